"""An output of a stage is sent as the stage returned it, here transposed. gloo rejects it as non-contiguous."""

import torch
from ranks import LOOPED, compare

M = 2


class Transposed(torch.nn.Module):
    def __init__(self, view):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.view = view

    def forward(self, x):
        y = self.layer(x).mT
        return y if self.view else y.contiguous()


def program(pipe, bug):
    pipe.build([Transposed(bug), torch.nn.Linear(2, 1)], M, loss=lambda y, t: y.sum())
    pipe.step(torch.ones(4, 2), target=torch.ones(4, 1))
    return {"learned": pipe.modules[0].layer.weight.grad is not None} if 0 in pipe.own else {}


compare("an output that is a view", program, {"learned": True}, schedules=LOOPED,
        error="Error: .*contiguous")  # fmt: skip
