"""A stage that forwards its input unchanged (for a later one), backward in halves: the input half detaches that output
in place. It is the receive buffer of the input, which from the next step on requires no gradient."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.layer(x), x


class Third(torch.nn.Module):
    def forward(self, y, x):
        return y + x


def body(rank):
    module = (torch.nn.Linear(2, 2), Second(), Third())[rank]
    like = [torch.ones(2, 2, requires_grad=True) for _ in range(2)]
    shapes = ((torch.ones(2, 2), like[0]), (like[0], tuple(like)), (tuple(like), like[0]))[rank]
    stage = PipelineStage(module, rank, 3, CPU, input_args=shapes[0], output_args=shapes[1])
    schedule = ScheduleInterleavedZeroBubble([stage], 3, loss_fn=lambda y, t: (y * y).sum())
    args, keywords = fed(rank, torch.ones(6, 2), torch.ones(6, 2), last=2)
    for _ in range(2):
        schedule.step(*args, **keywords)


run(3, body)
conclude(False, "", "a stage may hand on its input in several steps")
