"""A keyword input of a later stage that is a leaf and requires a gradient: the input half gives its gradient to the slices that
step() made of it, and goes no further, so that the user finds none. A whole backward, and the first stage, give it."""

import torch
from ranks import LOOPED, compare

M = 4


class Stage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x, scale=None):
        return x * self.weight * (1 if scale is None else scale)


def program(pipe, bug):
    scale = torch.ones(M, 1, requires_grad=True)
    pipe.build([Stage(), Stage()], M, loss=lambda y, t: y.sum(), scale_grads=False)
    takes = pipe.has_last if bug else pipe.has_first
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1), **({"scale": scale} if takes else {}))
    return {"gradient": scale.grad if scale.grad is None else scale.grad.sum().item()} if takes else {}


compare("gradient of an input of the second stage", program, {"gradient": M}, schedules=LOOPED)
