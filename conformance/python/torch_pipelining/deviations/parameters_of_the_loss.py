"""A loss function with parameters that learn (a temperature, the centres of classes): the end of a step divides the gradients of
stages by the number of micro-batches, but not these; weight halves compute only gradients of stages, and these stay None."""

import torch
from ranks import LOOPED, compare

M = 4


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, output, target):
        return (output * self.scale).mean()


class Last(torch.nn.Module):
    """The stage with the same parameter: the control."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, x):
        return x * self.scale


def program(pipe, bug):
    loss, last, first = Loss(), Last(), torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(first.weight)
    pipe.build([first, torch.nn.Identity() if bug else last], M, loss=loss if bug else lambda y, t: y.mean())
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    gradient = (loss if bug else last).scale.grad
    return {"gradient": gradient if gradient is None else gradient.item()} if pipe.has_last else {}


compare("gradient of a parameter of a mean loss", program, {"gradient": 1.0}, schedules=LOOPED)
