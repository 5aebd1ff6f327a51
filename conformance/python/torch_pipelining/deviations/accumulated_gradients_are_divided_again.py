"""scale_grads divides all of .grad at the end of each step: if two steps accumulate, the gradient of the first one is
divided by the number of micro-batches twice. (pytorch/torchtitan issue 1733)"""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

M = 4


def body(rank):
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(layer.weight)
    schedule = ScheduleGPipe(PipelineStage(layer, rank, 2, CPU), M, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(M, 1), torch.ones(M, 1))
    for _ in range(2):
        schedule.step(*args, **keywords)
    return layer.weight.grad.item()


gradient = run(2, body)[0]  # each step's is 1: the mean over micro-batches of dy/dw = x = 1
conclude(gradient != 2, f"two steps of gradient 1 accumulate to {gradient}", "two steps of gradient 1 accumulate to 2")
