"""A model that computes its loss: outputs without dimensions cannot be joined, and step() fails at its end."""

import torch
from ranks import compare

M = 2


class Loss(torch.nn.Module):
    def __init__(self, scalar):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.scalar = scalar

    def forward(self, x):
        loss = self.layer(x).sum()
        return loss if self.scalar else loss.reshape(1)


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1), Loss(bug)], M, loss=lambda y, t: y.sum())
    output = pipe.step(torch.ones(4, 1), target=torch.ones(M))
    return {} if output is None else {"losses": len(output)}


compare("outputs of a model that computes its loss", program, {"losses": M},
        error="RuntimeError: zero-dimensional tensor")  # fmt: skip
