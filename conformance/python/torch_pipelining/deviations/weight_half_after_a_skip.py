"""A stage with a skip connection: it sends a value from its middle to the next stage, beside the result. Backward in
halves: the input half detaches outputs in place, but the weight half needs that value."""

import torch
from ranks import HALVES, compare

M = 4


class Skip(torch.nn.Module):
    def __init__(self, middle):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.middle = middle

    def forward(self, x):
        skip = self.first(x)
        return self.second(skip), skip if self.middle else skip * 1


class Sum(torch.nn.Module):
    def forward(self, x, skip):
        return x + skip


def program(pipe, bug):
    pipe.build([torch.nn.Linear(2, 2), Skip(bug), Sum(), torch.nn.Linear(2, 2)], M, loss=lambda y, t: (y * y).sum())
    pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    return {"learned": all(p.grad is not None for p in pipe.modules[1].parameters())} if 1 in pipe.own else {}


compare("a value from the middle of a stage", program, {"learned": True}, stages=4, schedules=HALVES,
        error="RuntimeError: Trying to use a saved tensor that has been detached in-place")  # fmt: skip
