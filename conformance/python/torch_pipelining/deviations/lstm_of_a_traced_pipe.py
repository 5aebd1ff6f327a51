"""An LSTM layer whose last state is used: torch.export gives that state four dimensions, so pipeline() cannot trace the
model."""

import torch
from ranks import conclude
from torch.distributed.pipelining import pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.LSTM(3, 3, batch_first=True), torch.nn.Linear(3, 3)

    def forward(self, x):
        y, (h, _) = self.first(x)
        y = y + h.transpose(0, 1)
        pipe_split()
        return self.second(y)


try:
    pipeline(Model(), (torch.ones(2, 4, 3),))
    why = None
except RuntimeError as error:
    why = next((line for line in str(error.__cause__ or error).splitlines() if line), "refused")
conclude(why, f"an LSTM layer is not traced: {why}", "an LSTM layer is traced")
