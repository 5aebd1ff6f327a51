"""A value that the last stage receives and returns, but that the loss ignores: without a pipeline the parameters before
it have no gradient (None), in a pipeline one of zeros, which an optimizer with momentum or weight decay applies."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.ignored = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)

    def forward(self, x):
        return self.layer(x), self.ignored(x)


class Second(torch.nn.Module):
    def forward(self, x, ignored):
        return x * 2, ignored


def body(rank):
    stage = PipelineStage((First, Second)[rank](), rank, 2, CPU)
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda y, t: y[0].sum())
    args, keywords = fed(rank, torch.ones(2, 1), torch.ones(2, 1))
    schedule.step(*args, **keywords)
    gradient = stage.submod.ignored.weight.grad if rank == 0 else None
    return None if gradient is None else gradient.item()


gradient, _ = run(2, body)
conclude(gradient is not None, f"the gradient of what the loss ignores is {gradient}", "what the loss ignores has no gradient")
