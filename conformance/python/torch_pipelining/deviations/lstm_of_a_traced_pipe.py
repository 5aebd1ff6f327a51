"""An LSTM layer whose last state is used: torch.export gives that state four dimensions, so pipeline() cannot trace the
model."""

import torch
from ranks import NONE, compare
from torch.distributed.pipelining import pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self, state):
        super().__init__()
        self.first, self.second = torch.nn.LSTM(3, 3, batch_first=True), torch.nn.Linear(3, 3)
        self.state = state

    def forward(self, x):
        y, (h, _) = self.first(x)
        if self.state:
            y = y + h.transpose(0, 1)
        pipe_split()
        return self.second(y)


def program(_, bug):
    return {"stages": pipeline(Model(bug), (torch.ones(2, 4, 3),)).num_stages}


compare("an LSTM layer", program, {"stages": 2}, schedules=NONE, error="RuntimeError: Attempting to broadcast a dimension")
