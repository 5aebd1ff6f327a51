"""eval() of a schedule with several stages a rank divides the gradients that are there by the number of micro-batches."""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import PipelineStage, ScheduleInterleaved1F1B

M = 4


def body(rank):
    layer = torch.nn.Linear(1, 1)
    schedule = ScheduleInterleaved1F1B([PipelineStage(layer, rank, 2, CPU)], M, loss_fn=lambda y, t: y.sum())
    given = ([torch.ones(M, 1)] if rank == 0 else [], {"target": torch.ones(M, 1)} if rank == 1 else {})
    schedule.step(*given[0], **given[1])
    before = layer.weight.grad.item()
    with torch.no_grad():
        schedule.eval(*given[0], **given[1])
    return layer.weight.grad.item() / before


ratio = run(2, body)[0][0]
conclude(ratio != 1, f"an evaluation multiplied the gradients by {ratio}", "an evaluation left the gradients alone")
