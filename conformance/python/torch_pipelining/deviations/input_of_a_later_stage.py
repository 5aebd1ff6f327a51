"""An input of the model that a later stage is the first to use (a target, say): a traced pipe has no place for it, though
its first stage is called with all inputs. (pytorch issue 130055 asks for arguments of later stages)"""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import ScheduleGPipe, pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)

    def forward(self, x, z):
        x = self.first(x)
        pipe_split()
        return self.second(x) * z


def body(rank):
    schedule = ScheduleGPipe(pipeline(Model(), (torch.ones(1, 1), torch.ones(1, 1))).build_stage(rank, CPU), 2)
    schedule.step(*([torch.ones(2, 1)] * 2 if rank == 0 else []))


run(2, body)
conclude(False, "", "the later stage gets its input")
