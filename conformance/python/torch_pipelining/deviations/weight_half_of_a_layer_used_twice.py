"""A layer that its stage uses twice, with another one between, backward in halves: the weight half of the first layer
runs through the graph of the other one and frees it; the weight half of the other layer then has no graph."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.common, self.between = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.common(self.between(self.common(x)))


def body(rank):
    stage = PipelineStage((torch.nn.Linear(2, 2), Second())[rank], rank, 2, CPU)
    schedule = ScheduleInterleavedZeroBubble([stage], 2, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(4, 2), torch.ones(4, 2))
    schedule.step(*args, **keywords)


run(2, body)
conclude(False, "", "a layer may be used twice")
