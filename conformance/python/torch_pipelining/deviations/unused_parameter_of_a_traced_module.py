"""A parameter that forward does not use: traced and cut by pipeline(), no stage has it, so that a checkpoint lacks it."""

import torch
from ranks import NONE, compare
from torch.distributed.pipelining import pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self, spare):
        super().__init__()
        self.first, self.second, self.third = (torch.nn.Linear(1, 1, bias=False) for _ in range(3))
        self.spare = spare

    def forward(self, x):
        x = self.first(x)
        pipe_split()
        x = self.second(x)
        return x if self.spare else self.third(x)


def program(_, bug):
    pipe = pipeline(Model(bug), (torch.ones(1, 1),))
    held = {name for s in range(pipe.num_stages) for name, _ in pipe.get_stage_module(s).named_parameters()}
    return {"parameters": sorted(held)}


compare("parameters of all stages", program, {"parameters": ["first.weight", "second.weight", "third.weight"]}, schedules=NONE)
