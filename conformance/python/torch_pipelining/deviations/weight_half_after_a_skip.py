"""A stage with a skip connection: it sends a value from its middle to the next stage, beside the result. Backward in
halves: the input half detaches outputs in place, but the weight half needs that value."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x):
        skip = self.first(x)
        return self.second(skip), skip


class Third(torch.nn.Module):
    def forward(self, x, skip):
        return x + skip


def body(rank):
    module = (torch.nn.Linear(2, 2), Second(), Third())[rank]
    schedule = ScheduleInterleavedZeroBubble([PipelineStage(module, rank, 3, CPU)], 3, loss_fn=lambda y, t: (y * y).sum())
    args, keywords = fed(rank, torch.ones(6, 2), torch.ones(6, 2), last=2)
    schedule.step(*args, **keywords)


run(3, body)
conclude(False, "", "a stage may hand on a value from its middle")
