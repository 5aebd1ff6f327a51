"""A stage whose input needs no gradient (all before it is frozen), backward in halves: its parameters' gradients are
silently lost. PyTorch finds a parameter where its path meets that of the input; here the paths never meet."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble


def body(rank):
    layer = torch.nn.Linear(1, 1).requires_grad_(rank == 1)
    schedule = ScheduleInterleavedZeroBubble([PipelineStage(layer, rank, 2, CPU)], 2, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(4, 1), torch.ones(4, 1))
    schedule.step(*args, **keywords)
    return None if layer.weight.grad is None else layer.weight.grad.item()


gradients = run(2, body)
conclude(gradients[1] is None, "the second stage's weight has no gradient", "the second stage's weight has its gradient")
