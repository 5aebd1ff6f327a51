"""Rows that do not divide evenly: later micro-batches are smaller than the first, whose shape PyTorch uses for all.
(pytorch issue 126600)"""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def body(rank):
    schedule = ScheduleGPipe(PipelineStage(torch.nn.Identity(), rank, 2, CPU), 2)
    x = torch.arange(5.0).reshape(5, 1)
    output = schedule.step(*([x] if rank == 0 else []))
    return None if output is None else output.flatten().tolist()


_, output = run(2, body)
conclude(output != [0, 1, 2, 3, 4], f"[0, 1, 2, 3, 4] went through as {output}", "5 rows go through as 2 micro-batches")
