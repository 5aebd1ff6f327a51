"""The input half of a backward (zero-bubble schedules) returns autograd's gradient unchanged, here a slice of a larger
tensor, since the stage begins with torch.cat. It is sent unchanged, and gloo rejects it as non-contiguous."""

import torch
from ranks import HALVES, compare

M = 4


class Cat(torch.nn.Module):
    def __init__(self, first):
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)
        self.first = first

    def forward(self, x):
        return self.layer(torch.cat([x if self.first else x * 1, torch.ones_like(x)], dim=1))


def program(pipe, bug):
    like = [torch.ones(2, 2, requires_grad=s > 0) for s in range(5)]
    modules = [torch.nn.Linear(2, 2), Cat(bug), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
    pipe.build(modules, M, loss=lambda y, t: y.sum(), shapes=like)
    pipe.step(torch.ones(2 * M, 2), target=torch.ones(2 * M, 2))
    return {"learned": pipe.modules[0].weight.grad is not None} if 0 in pipe.own else {}


compare("a stage that begins with torch.cat", program, {"learned": True}, stages=4, schedules=HALVES,
        error="Error: .*contiguous")  # fmt: skip
