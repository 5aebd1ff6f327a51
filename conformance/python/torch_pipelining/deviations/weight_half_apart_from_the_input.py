"""A parameter that reaches the stage's outputs without meeting the path of the input (a learned prompt, say, that is a
separate output), backward in halves: its gradient is silently lost."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.prompt = torch.nn.Parameter(torch.ones(2, 1))

    def forward(self, x):
        return x * 2, self.prompt * 3


class Third(torch.nn.Module):
    def forward(self, x, prompt):
        return x + prompt


def body(rank):
    module = (torch.nn.Linear(1, 1), Second(), Third())[rank]
    schedule = ScheduleInterleavedZeroBubble([PipelineStage(module, rank, 3, CPU)], 3, loss_fn=lambda y, t: (y * y).sum())
    args, keywords = fed(rank, torch.ones(6, 1), torch.ones(6, 1), last=2)
    schedule.step(*args, **keywords)
    return [None if p.grad is None else p.grad.flatten().tolist() for p in module.parameters()]


gradients = run(3, body)
conclude(gradients[1][0] is None, "the prompt has no gradient", "the prompt has its gradient")
