"""A stage that forwards its input unchanged (for a later one), backward in halves: the input half detaches that output
in place. It is the receive buffer of the input, which from the next step on requires no gradient."""

import torch
from ranks import HALVES, compare

M = 4


class Hands(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x), x


class Sum(torch.nn.Module):
    def forward(self, y, x):
        return y + x


def program(pipe, bug):
    like = [torch.ones(1, 2, requires_grad=s > 0) for s in range(5)]
    like[2] = (like[2], like[2])
    pipe.build([torch.nn.Linear(2, 2), Hands(), Sum(), torch.nn.Linear(2, 2)], M, loss=lambda y, t: (y * y).sum(), shapes=like)
    for _ in range(2 if bug else 1):
        pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    return {"learned": pipe.modules[1].layer.weight.grad is not None} if 1 in pipe.own else {}


compare("a stage that hands on its input", program, {"learned": True}, stages=4, schedules=HALVES,
        error="RuntimeError: .* does not require grad")  # fmt: skip
