"""eval() of a schedule that has a loss function, without a target: PyTorch still requires one."""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe


def body(_):
    stage = PipelineStage(torch.nn.Linear(1, 1), 0, 1, CPU)
    schedule = ScheduleGPipe(stage, 2, loss_fn=torch.nn.functional.mse_loss)
    with torch.no_grad():
        schedule.eval(torch.ones(4, 1))


run(1, body)
conclude(False, "", "eval() without a target works")
