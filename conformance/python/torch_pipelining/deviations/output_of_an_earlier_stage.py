"""An output of the model that an earlier stage computes, traced and cut by pipeline(): the schedule does not return
it."""

import torch
from ranks import LOOPED, compare
from torch.distributed.pipelining import pipe_split, pipeline

M = 2


class Model(torch.nn.Module):
    def __init__(self, early):
        super().__init__()
        self.first, self.second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        self.early = early

    def forward(self, x):
        early = self.first(x)
        pipe_split()
        late = self.second(early)
        return late, early if self.early else late * 2


PIPES = {bug: pipeline(Model(bug), (torch.ones(1, 1),)) for bug in (False, True)}  # traced once, before the ranks are forked


def program(pipe, bug):
    pipe.build(PIPES[bug], M)
    output = pipe.step(torch.ones(M, 1))
    return {"outputs": len(output) if isinstance(output, (tuple, list)) else 1} if pipe.has_last else {}


compare("outputs of a model of which the first stage makes one", program, {"outputs": 2}, schedules=LOOPED)
