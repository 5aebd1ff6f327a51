"""Shape inference at run time gives the gradient's receive buffer the strides of a gradient of autograd.grad, here a
slice of a larger tensor. Later gradients have other strides: gloo rejects such a buffer."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(torch.cat([x, torch.ones_like(x)], dim=1))


def body(rank):
    stage = PipelineStage((torch.nn.Linear(2, 2), Second())[rank], rank, 2, CPU)
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(4, 2), torch.ones(4, 1))
    schedule.step(*args, **keywords)


run(2, body)
conclude(False, "", "the gradient of a stage whose successor begins with torch.cat arrives")
