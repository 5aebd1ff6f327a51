"""eval() first, then step(): the receive buffers for activations were created without gradients, and stay so."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def body(rank):
    layer = torch.nn.Linear(1, 1)
    schedule = ScheduleGPipe(PipelineStage(layer, rank, 2, CPU), 2, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(4, 1), torch.ones(4, 1))
    with torch.no_grad():
        schedule.eval(*args, **keywords)
    schedule.step(*args, **keywords)
    return layer.weight.grad is not None


learned = run(2, body)
conclude(not learned[0], "the first stage has no gradient", "training after an evaluation works")
