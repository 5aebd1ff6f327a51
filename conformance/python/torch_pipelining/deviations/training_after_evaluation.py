"""eval() first, then step(): the buffers that receive activations were made without gradients, and stay so."""

import torch
from ranks import CPU, conclude, reason, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def body(rank):
    layer = torch.nn.Linear(1, 1)
    schedule = ScheduleGPipe(PipelineStage(layer, rank, 2, CPU), 2, loss_fn=lambda y, t: y.sum())
    given = ([torch.ones(4, 1)] if rank == 0 else [], {"target": torch.ones(4, 1)} if rank == 1 else {})
    with torch.no_grad():
        schedule.eval(*given[0], **given[1])
    schedule.step(*given[0], **given[1])
    return layer.weight.grad is not None


answers = run(2, body)
why = reason(answers)
conclude(why or not answers[0][0], why or "the first stage has no gradient", "training after an evaluation works")
