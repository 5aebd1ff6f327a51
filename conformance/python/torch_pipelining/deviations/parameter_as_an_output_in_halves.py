"""A last stage that returns one of its parameters beside its result, backward in halves: the input half looks for the
operator that computed the output, and there is none."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble

M = 2


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.weight, self.weight


def body(rank):
    stage = PipelineStage((torch.nn.Linear(1, 1), Scale())[rank], rank, 2, CPU)
    schedule = ScheduleInterleavedZeroBubble([stage], M, loss_fn=lambda y, t: y[0].sum() + y[1].sum(), scale_grads=False)
    args, keywords = fed(rank, torch.ones(M, 1), torch.ones(M, 1))
    schedule.step(*args, **keywords)
    return stage.submod.weight.grad is not None if rank == 1 else None


_, learned = run(2, body)
conclude(not learned, "the parameter has no gradient", "the parameter gets its gradient")
