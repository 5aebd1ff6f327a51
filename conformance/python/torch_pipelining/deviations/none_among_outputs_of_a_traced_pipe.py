"""A model that returns (y, None, z), traced and cut by pipeline(): the last stage returns (y, z), so z takes the place
of None."""

import torch
from ranks import LOOPED, compare
from torch.distributed.pipelining import pipe_split, pipeline

M = 2


class Model(torch.nn.Module):
    def __init__(self, none):
        super().__init__()
        self.first, self.second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        self.none = none

    def forward(self, x):
        x = self.first(x)
        pipe_split()
        x = self.second(x)
        return x, None if self.none else x * 3, x * 2


PIPES = {bug: pipeline(Model(bug), (torch.ones(1, 1),)) for bug in (False, True)}  # traced once, before the ranks are forked


def program(pipe, bug):
    pipe.build(PIPES[bug], M)
    output = pipe.step(torch.ones(M, 1))
    return {} if output is None else {"are None": [x is None for x in output]}


compare("three outputs", program, lambda bug: {"are None": [False, bug, False]}, schedules=LOOPED)
