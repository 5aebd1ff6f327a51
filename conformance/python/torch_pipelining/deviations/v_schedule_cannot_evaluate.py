"""eval() of a schedule that puts neighbouring stages on one rank fails: the later stage passes a gradient back."""

import torch
from ranks import CPU, conclude, run, without_messages_to_itself
from torch.distributed.pipelining import PipelineStage, ScheduleZBVZeroBubble


def body(_):
    stages = [without_messages_to_itself(PipelineStage(torch.nn.Linear(1, 1), i, 2, CPU)) for i in range(2)]
    schedule = ScheduleZBVZeroBubble(stages, 2, loss_fn=lambda y, t: y.sum())
    with torch.no_grad():
        schedule.eval(torch.ones(2, 1), target=torch.ones(2, 1))


run(1, body)
conclude(False, "", "eval() works")
