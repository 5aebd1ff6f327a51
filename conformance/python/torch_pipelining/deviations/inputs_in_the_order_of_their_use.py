"""A model of two inputs that uses the second one first, traced and cut by pipeline(): its first stage takes them in the
order of their use, but the schedule passes them in the order of the model."""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import ScheduleGPipe, pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(1, 1, bias=False), torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.constant_(self.first.weight, 2)
        torch.nn.init.ones_(self.second.weight)

    def forward(self, x, y):
        y = self.first(y)
        z = y - x
        pipe_split()
        return self.second(z)


def body(rank):
    schedule = ScheduleGPipe(pipeline(Model(), (torch.ones(1, 1), torch.ones(1, 1))).build_stage(rank, CPU), 2)
    output = schedule.step(*([torch.ones(2, 1), torch.full((2, 1), 10.0)] if rank == 0 else []))
    return None if rank == 0 else output.flatten().tolist()


_, output = run(2, body)
conclude(output != [19, 19], f"2 * 10 - 1 is {output[0]}", "2 * 10 - 1 is 19")
