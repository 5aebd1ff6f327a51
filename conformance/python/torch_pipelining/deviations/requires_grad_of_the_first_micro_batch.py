"""An input that is handed on to the next stage and requires a gradient in one micro-batch only, which the user gives apart
(arg_mbs): PyTorch takes what the first micro-batch requires for all of them, and a backward finds no root."""

import torch
from ranks import LOOPED, compare

M = 4


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x, late):
        return x * self.weight, late * 1


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x, late):
        return x * late * self.weight


def program(pipe, bug):
    late = [torch.ones(1, 1).requires_grad_(m == M - 1 or not bug) for m in range(M)]
    pipe.build([First(), Second()], M, loss=lambda y, t: y.sum(), scale_grads=False)
    given = {"arg_mbs": [(torch.ones(1, 1), x) for x in late]} if pipe.has_first else {}
    pipe.step(**given, **({"target_mbs": late} if pipe.has_last else {}))
    return pipe.gradients()


compare("a gradient in one micro-batch only", program, {"stage 0": [4.0], "stage 1": [4.0]}, schedules=LOOPED,
        error="A GradientEdge root requires a gradient", argument="arg_mbs")  # fmt: skip
