"""A tensor of integers that one stage sends to the next (token numbers, say). 2.11 requires a gradient for it. 2.15
infers shapes by running the next stage once on uninitialised memory, whose contents are out of range as indices."""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

ROWS = 64  # of a micro-batch
seen = []


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x, index):
        return self.layer(x), index


class Second(torch.nn.Module):
    def forward(self, x, index):
        seen.extend(index.flatten().tolist())
        return x


def body(rank):
    junk = [torch.full((ROWS,), 10**6) for _ in range(200)]
    del junk  # the next allocation may reuse its memory
    stage = PipelineStage((First, Second)[rank](), rank, 2, CPU)
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda y, t: (y * y).sum())
    inputs = [torch.ones(2 * ROWS, 1), torch.arange(2 * ROWS) % 4] if rank == 0 else []
    schedule.step(*inputs, **({"target": torch.ones(2 * ROWS, 1)} if rank == 1 else {}))
    return sorted(set(seen))


_, indices = run(2, body)
conclude(indices != [0, 1, 2, 3], f"0 to 3 were sent, the next stage was called with {indices[0]} to {indices[-1]}",
         "the next stage sees the numbers that were sent")
