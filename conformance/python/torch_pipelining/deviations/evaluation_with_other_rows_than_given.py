"""Stages whose shapes the user gives (input_args) keep the receive buffers of these shapes: an eval() of fewer rows
returns outputs of as many rows as those (2.15), or is rejected (2.11). More rows than given abort a rank (2.15)."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def body(rank):
    like = torch.ones(2, 1, requires_grad=rank == 1), torch.ones(2, 1, requires_grad=True)
    stage = PipelineStage(torch.nn.Linear(1, 1), rank, 2, CPU, input_args=like[0], output_args=like[1])
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda y, t: y.sum())
    shapes = []
    for rows, step in ((4, schedule.step), (4, schedule.eval), (2, schedule.eval)):
        with torch.set_grad_enabled(step == schedule.step):
            args, keywords = fed(rank, torch.ones(rows, 1), torch.ones(rows, 1))
            output = step(*args, **keywords)
            shapes.append(None if output is None else list(output.shape))
    return shapes


_, (trained, same, fewer) = run(2, body)
assert trained == same == [4, 1]  # the control
conclude(fewer != [2, 1], f"outputs of shape {fewer} for [2, 1]", "a batch of another size than that given is evaluated")
