"""Two parameters that a stage adds through views: their gradients share memory in autograd. Each micro-batch is added
to it once for each of the two, and it is divided by the number of micro-batches twice: silent."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = (torch.nn.Parameter(torch.zeros(3)) for _ in range(2))

    def forward(self, x):
        return x + (self.left.view(1, 3) + self.right.view(1, 3))


def body(rank):
    stage = PipelineStage((torch.nn.Linear(3, 3), Second())[rank], rank, 2, CPU)
    schedule = ScheduleGPipe(stage, 4, loss_fn=lambda y, t: (y * t).sum())
    args, keywords = fed(rank, torch.ones(4, 3), torch.ones(4, 3))
    schedule.step(*args, **keywords)
    return stage.submod.left.grad[0].item() if rank == 1 else None


_, gradient = run(2, body)
conclude(gradient != 1, f"the gradient, 1 in each of 4 micro-batches and so in their mean, is {gradient}", "the gradient is 1")
