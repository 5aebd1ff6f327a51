"""A V-shaped schedule begins with a message from a rank to itself, which gloo refuses."""

import torch
from ranks import CPU, conclude, reason, run
from torch.distributed.pipelining import PipelineStage, ScheduleZBVZeroBubble


def body(rank):
    stages = [PipelineStage(torch.nn.Linear(1, 1), i, 4, CPU) for i in (rank, 3 - rank)]
    schedule = ScheduleZBVZeroBubble(stages, 4, loss_fn=lambda y, t: y.sum())
    schedule.step(*([torch.ones(4, 1)] if rank == 0 else []), **({"target": torch.ones(4, 1)} if rank == 0 else {}))


why = reason(run(2, body))
conclude(why, why, "it runs")
