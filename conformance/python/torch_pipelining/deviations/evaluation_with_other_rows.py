"""eval() on a batch of another size than that of step(): PyTorch keeps the shapes that it inferred first."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def body(rank):
    schedule = ScheduleGPipe(PipelineStage(torch.nn.Linear(1, 1), rank, 2, CPU), 2, loss_fn=lambda y, t: y.sum())
    for rows, step in ((4, schedule.step), (2, schedule.eval)):
        with torch.set_grad_enabled(step == schedule.step):
            args, keywords = fed(rank, torch.ones(rows, 1), torch.ones(rows, 1))
            output = step(*args, **keywords)
    return None if output is None else list(output.shape)


_, shape = run(2, body)
conclude(shape != [2, 1], f"outputs of shape {shape} for [2, 1]", "a batch of another size is evaluated")
