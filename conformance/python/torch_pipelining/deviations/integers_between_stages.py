"""A tensor of integers that one stage sends to the next (token numbers, say). 2.11 requires a gradient for it. 2.15
infers shapes by running the next stage once on uninitialised memory, whose contents are out of range as indices."""

import torch
from ranks import LOOPED, compare

M = 2
ROWS = 64  # of a micro-batch
seen = []


class First(torch.nn.Module):
    def __init__(self, integers):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.integers = integers

    def forward(self, x, index):
        return self.layer(x), index if self.integers else index + 0 * self.layer.bias


class Second(torch.nn.Module):
    def forward(self, x, index):
        # Real numbers are not told apart from the zeros of an earlier micro-batch: only integers are indices.
        if not index.is_floating_point():
            seen.extend(index.flatten().tolist())
        return x + 0 * index.reshape(-1, 1)


def program(pipe, bug):
    junk = [torch.full((ROWS,), 10**6) for _ in range(200)]
    del junk  # the next allocation may reuse its memory
    pipe.build([First(bug), Second()], M, loss=lambda y, t: (y * y).sum())
    pipe.step(torch.ones(M * ROWS, 1), torch.arange(M * ROWS) % 4, target=torch.ones(M * ROWS, 1))
    return {"indices": sorted(set(seen))[-4:]} if 1 in pipe.own else {}


compare("indices that a stage gets", program, lambda bug: {"indices": [0, 1, 2, 3] if bug else []}, schedules=LOOPED,
        error="RuntimeError|AssertionError|PipeliningMetadataError|ValueError")  # fmt: skip
