"""A parameter beside the result of the model, which the last stage uses: traced, pipeline() does not cut the model."""

import torch
from ranks import conclude
from torch.distributed.pipelining import pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)

    def forward(self, x):
        x = self.first(x)
        pipe_split()
        return self.second(x), self.second.weight


try:
    pipeline(Model(), (torch.ones(1, 1),))
    why = None
except AssertionError as error:
    why = str(error)
conclude(why, f"a parameter that is an output: {why}", "a parameter can be an output")
