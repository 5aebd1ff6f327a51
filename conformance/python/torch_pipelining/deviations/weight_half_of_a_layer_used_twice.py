"""A layer that its stage uses twice, with another one between, backward in halves: the weight half of the first layer
runs through the graph of the other one and frees it; the weight half of the other layer then has no graph."""

import torch
from ranks import HALVES, compare

M = 4


class Sandwich(torch.nn.Module):
    def __init__(self, twice):
        super().__init__()
        self.common, self.between, self.other = (torch.nn.Linear(2, 2) for _ in range(3))
        self.twice = twice

    def forward(self, x):
        return (self.common if self.twice else self.other)(self.between(self.common(x)))


def program(pipe, bug):
    modules = [torch.nn.Linear(2, 2), Sandwich(bug), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
    pipe.build(modules, M, loss=lambda y, t: y.sum())
    pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    return {"learned": all(p.grad is not None for p in pipe.modules[1].common.parameters())} if 1 in pipe.own else {}


compare("a layer that is used twice", program, {"learned": True}, stages=4, schedules=HALVES,
        error="RuntimeError: Trying to backward through the graph a second time")  # fmt: skip
