"""The input half of a backward (zero-bubble schedules) returns autograd's gradient unchanged, here a slice of a larger
tensor, since the stage begins with torch.cat. It is sent unchanged, and gloo rejects it as non-contiguous."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x):
        return self.layer(torch.cat([x, torch.ones_like(x)], dim=1))


def body(rank):
    module = (torch.nn.Linear(2, 2), Second())[rank]
    like = torch.ones(2, 2), torch.ones(2, 2, requires_grad=True), torch.ones(2, 1, requires_grad=True)
    stage = PipelineStage(module, rank, 2, CPU, input_args=like[rank], output_args=like[rank + 1])
    schedule = ScheduleInterleavedZeroBubble([stage], 2, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(4, 2), torch.ones(4, 1))
    schedule.step(*args, **keywords)


run(2, body)
conclude(False, "", "a gradient that is a view is sent")
