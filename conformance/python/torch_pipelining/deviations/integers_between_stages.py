"""A tensor of integers that one stage sends to the next (token numbers, say). 2.11 requires a gradient for it. 2.15
infers shapes by running the next stage once on uninitialised memory, whose contents are out of range as indices."""

import torch
from ranks import LOOPED, compare

M = 2
ROWS = 64  # of a micro-batch


class First(torch.nn.Module):
    def __init__(self, integers):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.integers = integers

    def forward(self, x, index):
        return self.layer(x), index if self.integers else index + 0 * self.layer.bias


class Second(torch.nn.Module):
    def forward(self, x, index):
        if index.is_floating_point():  # the control: a stage that is safe from what a probe contains
            x, index = x + 0 * index.nan_to_num().reshape(-1, 1), index.nan_to_num().clamp(0, 3).long()
        return x + torch.arange(4.0)[index].reshape(-1, 1)


def program(pipe, bug):
    junk = [torch.full((ROWS,), 10**6) for _ in range(200)]
    del junk  # the next allocation may reuse its memory
    pipe.build([First(bug), Second()], M, loss=lambda y, t: (y * y).sum())
    output = pipe.step(torch.ones(M * ROWS, 1), torch.arange(M * ROWS) % 4, target=torch.ones(M * ROWS, 1))
    return {} if output is None else {"rows": len(output)}


compare("indices from another stage", program, {"rows": M * ROWS}, schedules=LOOPED,
        error="IndexError|RuntimeError: only Tensors of floating point dtype can require gradients")  # fmt: skip
