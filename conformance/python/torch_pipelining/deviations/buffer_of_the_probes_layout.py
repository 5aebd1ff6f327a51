"""Shape inference at run time gives the gradient's receive buffer the strides of a gradient of autograd.grad, here a
slice of a larger tensor. Later gradients have other strides: gloo rejects such a buffer."""

import torch
from ranks import WHOLE, compare

M = 4


class Cat(torch.nn.Module):
    def __init__(self, first):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
        self.first = first

    def forward(self, x):
        return self.layer(torch.cat([x if self.first else x * 1, torch.ones_like(x)], dim=1))


def program(pipe, bug):
    pipe.build([torch.nn.Linear(2, 2), Cat(bug)], M, loss=lambda y, t: y.sum())
    pipe.step(torch.ones(2 * M, 2), target=torch.ones(2 * M, 1))
    return {"learned": pipe.modules[0].weight.grad is not None} if 0 in pipe.own else {}


compare("a stage that begins with torch.cat", program, {"learned": True}, schedules=WHOLE,
        error="Error: .*contiguous")  # fmt: skip
