"""eval() of a schedule with one stage a rank divides existing gradients by the number of micro-batches."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

M = 4


def body(rank):
    layer = torch.nn.Linear(1, 1)
    schedule = ScheduleGPipe(PipelineStage(layer, rank, 2, CPU), M, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(M, 1), torch.ones(M, 1))
    schedule.step(*args, **keywords)
    before = layer.weight.grad.item()
    with torch.no_grad():
        schedule.eval(*args, **keywords)
    return layer.weight.grad.item() / before


ratio = run(2, body)[0]
conclude(ratio != 1, f"an evaluation multiplied the gradients by {ratio}", "an evaluation left the gradients alone")
