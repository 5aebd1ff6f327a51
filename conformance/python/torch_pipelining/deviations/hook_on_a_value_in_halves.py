"""A hook that a stage's forward registers on a value, and that doubles its gradient, backward in halves: the input half and
the weight half each call it."""

import torch
from ranks import HALVES, WHOLE, compare

M = 4


class Hooked(torch.nn.Module):
    def __init__(self, hooks):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.hooks, self.calls = hooks, 0

    def double(self, gradient):
        self.calls += 1
        return gradient * 2

    def forward(self, x):
        h = self.first(x)
        if self.hooks and h.requires_grad:
            h.register_hook(self.double)
        return self.second(h)


def model(bug):
    torch.manual_seed(0)
    return [torch.nn.Linear(2, 2), Hooked(bug), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]


def program(pipe, bug):
    modules = model(bug)
    like = [torch.ones(1, 2, requires_grad=s > 0) for s in range(5)]  # without them a probe calls the hook too
    pipe.build(modules, M, loss=lambda y, t: y.sum(), scale_grads=False, shapes=like)
    pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    if 1 not in pipe.own:
        return {}
    return {"calls": modules[1].calls, "gradient before it": round(modules[1].first.bias.grad.sum().item(), 4)}


def right(bug):
    modules = model(bug)
    torch.nn.Sequential(*modules)(torch.ones(M, 2)).sum().backward()
    return {"calls": M if bug else 0, "gradient before it": round(modules[1].first.bias.grad.sum().item(), 4)}


compare("a hook on a value within a stage", program, right, stages=4, schedules=(*WHOLE, *HALVES))
