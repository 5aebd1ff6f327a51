"""A hook that the forward of a traced module registers on a value, and that doubles its gradient: the trace has none."""

import torch
from ranks import WHOLE, compare
from torch.distributed.pipelining import pipe_split, pipeline

M = 4


class Hooked(torch.nn.Module):
    def __init__(self, hooks):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
        self.hooks = hooks

    def forward(self, x):
        h = self.first(x)
        if self.hooks:
            h.register_hook(lambda gradient: gradient * 2)
        pipe_split()
        return self.second(h.relu())


def program(pipe, bug):
    torch.manual_seed(0)
    pipe.build(pipeline(Hooked(bug), (torch.ones(1, 2),)), M, loss=lambda y, t: y.sum(), scale_grads=False)
    pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    if not pipe.has_first:
        return {}
    return {"gradient before it": [round(p.grad.sum().item(), 4) for p in pipe.modules[0].parameters()]}


def right(bug):
    torch.manual_seed(0)
    model = Hooked(bug)
    h = model.first(torch.ones(M, 2))
    if bug:
        h.register_hook(lambda gradient: gradient * 2)
    model.second(h.relu()).sum().backward()
    return {"gradient before it": [round(p.grad.sum().item(), 4) for p in model.first.parameters()]}


compare("a hook in a traced module", program, right, schedules=WHOLE[:2])
