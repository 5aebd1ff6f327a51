"""eval() on a batch of another size than that of step(): what was found out of shapes first stays."""

import torch
from ranks import CPU, conclude, reason, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def body(rank):
    schedule = ScheduleGPipe(PipelineStage(torch.nn.Linear(1, 1), rank, 2, CPU), 2, loss_fn=lambda y, t: y.sum())
    for rows, step in ((4, schedule.step), (2, schedule.eval)):
        with torch.set_grad_enabled(step == schedule.step):
            output = step(*([torch.ones(rows, 1)] if rank == 0 else []), **({"target": torch.ones(rows, 1)} if rank == 1 else {}))
    return None if output is None else list(output.shape)


answers = run(2, body)
why = reason(answers)
conclude(why or answers[1][0] != [2, 1], why or f"outputs of shape {answers[1][0]} for [2, 1]", "a batch of another size is evaluated")
