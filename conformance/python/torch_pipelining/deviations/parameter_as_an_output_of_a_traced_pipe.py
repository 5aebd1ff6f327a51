"""A parameter beside the result of the model, which the last stage uses: traced, pipeline() does not cut the model."""

import torch
from ranks import NONE, compare
from torch.distributed.pipelining import pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self, returned):
        super().__init__()
        self.first, self.second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        self.returned = returned

    def forward(self, x):
        x = self.first(x)
        pipe_split()
        return self.second(x), self.second.weight if self.returned else self.second.weight * 1


def program(_, bug):
    return {"stages": pipeline(Model(bug), (torch.ones(1, 1),)).num_stages}


compare("a parameter that is an output", program, {"stages": 2}, schedules=NONE, error="AssertionError: .*output")
