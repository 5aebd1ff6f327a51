"""An output of a stage is sent as the stage returned it, here transposed. gloo rejects it as non-contiguous."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x).mT


def body(rank):
    stage = PipelineStage((First(), torch.nn.Linear(2, 1))[rank], rank, 2, CPU)
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(4, 2), torch.ones(4, 1))
    schedule.step(*args, **keywords)


run(2, body)
conclude(False, "", "an output that is a view is sent")
