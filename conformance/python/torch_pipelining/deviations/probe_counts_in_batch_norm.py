"""Shape inference at run time runs the module once on zeros, in training mode: running statistics include that run.
(pytorch pull request 188763 fixes it)"""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

M = 2


def body(_):
    module = torch.nn.BatchNorm1d(1)
    schedule = ScheduleGPipe(PipelineStage(module, 0, 1, CPU), M, loss_fn=lambda y, t: y.sum())
    schedule.step(torch.randn(8, 1), target=torch.ones(8, 1))
    return module.num_batches_tracked.item()


[tracked] = run(1, body)
conclude(tracked != M, f"{M} micro-batches, num_batches_tracked is {tracked}", f"{M} micro-batches are tracked as {M}")
