"""A stage with a skip connection: a value in its middle goes on to the next stage, on the same rank, beside the result.
Backward in halves: the input half detaches outputs in place, and the weight half has need of that value."""

import torch
from ranks import CPU, conclude, fed, run, without_messages_to_itself
from torch.distributed.pipelining import PipelineStage, ScheduleZBVZeroBubble


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
    modules = [torch.nn.Linear(2, 2), Second(), Third(), torch.nn.Linear(2, 2)]
    stages = [without_messages_to_itself(PipelineStage(modules[i], i, 4, CPU)) for i in (rank, 3 - rank)]
    schedule = ScheduleZBVZeroBubble(stages, 4, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(8, 2), torch.ones(8, 2), last=0)
    schedule.step(*args, **keywords)


run(2, body)
conclude(False, "", "a stage may hand on a value from its middle")
