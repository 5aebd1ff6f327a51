"""A model that returns (y, None, z), traced and cut by pipeline(): the last stage returns (y, z), so z takes the place
of None."""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import ScheduleGPipe, pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)

    def forward(self, x):
        x = self.first(x)
        pipe_split()
        x = self.second(x)
        return x, None, x * 2


def body(rank):
    schedule = ScheduleGPipe(pipeline(Model(), (torch.ones(1, 1),)).build_stage(rank, CPU), 2)
    output = schedule.step(*([torch.ones(2, 1)] if rank == 0 else []))
    return None if rank == 0 else [x is None for x in output]


_, are_none = run(2, body)
conclude(are_none != [False, True, False], f"{len(are_none)} outputs, None {sum(are_none)} times, for 3 with None once",
         "None is in its place")
