"""A split point after a layer and one before the next: pipeline() means to merge them, but looks for another function, and numbers
a stage that does not exist. The same with a split point before the first layer."""

import torch
from ranks import NONE, compare
from torch.distributed.pipelining import SplitPoint, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(1, 1) for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def program(_, bug):
    points = {"layers.0": SplitPoint.END} | ({"layers.1": SplitPoint.BEGINNING} if bug else {})
    pipe = pipeline(Model(), (torch.ones(1, 1),), split_spec=points)
    return {"parameters": [len(list(pipe.get_stage_module(s).parameters())) for s in range(pipe.num_stages)]}


compare("parameters of two stages between which are two split points", program, {"parameters": [2, 2]}, schedules=NONE,
        error="AttributeError: .* has no attribute 'submod_pp_1'")  # fmt: skip
