"""An output of the model that an earlier stage computes, traced and cut by pipeline(): the schedule does not return
it."""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import ScheduleGPipe, pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)

    def forward(self, x):
        early = self.first(x)
        pipe_split()
        return self.second(early), early


def body(rank):
    schedule = ScheduleGPipe(pipeline(Model(), (torch.ones(1, 1),)).build_stage(rank, CPU), 2)
    output = schedule.step(*([torch.ones(2, 1)] if rank == 0 else []))
    return None if rank == 0 else len(output) if isinstance(output, (tuple, list)) else 1


_, outputs = run(2, body)
conclude(outputs != 2, f"{outputs} output for 2", "both outputs are returned")
