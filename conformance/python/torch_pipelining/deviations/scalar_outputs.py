"""A model that computes its loss: outputs without dimensions cannot be joined, and step() fails at its end."""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x):
        return self.layer(x).sum()


def body(_):
    schedule = ScheduleGPipe(PipelineStage(Loss(), 0, 1, CPU), 2, loss_fn=lambda y, t: y)
    schedule.step(torch.ones(4, 1), target=torch.ones(2))


run(1, body)
conclude(False, "", "scalar outputs are returned")
