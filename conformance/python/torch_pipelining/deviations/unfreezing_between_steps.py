"""Parameters that are unfrozen between two steps (gradual unfreezing): in the first step PyTorch determines that the
next stage sends no gradient back, and keeps this result."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def body(rank):
    layer = torch.nn.Linear(1, 1).requires_grad_(rank == 1)
    schedule = ScheduleGPipe(PipelineStage(layer, rank, 2, CPU), 2, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(4, 1), torch.ones(4, 1))
    for _ in range(2):
        schedule.step(*args, **keywords)
        layer.requires_grad_(True)
    return layer.weight.grad is not None


learned = run(2, body)
conclude(not learned[0], "the first stage has no gradient", "an unfrozen stage learns")
