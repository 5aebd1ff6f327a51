"""A traced pipe sends a value directly to the stage that uses it, past the stages between. Under 1F1B the first stage
waits until the last one receives it, and the last one until the first receives an earlier gradient: a deadlock."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import Schedule1F1B, pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(1, 1) for _ in range(5))

    def forward(self, x):
        skip, x = self.layers[4](x), self.layers[0](x)
        for layer in self.layers[1:4]:
            pipe_split()
            x = layer(x)
        return x + skip


def body(rank):
    stage = pipeline(Model(), (torch.ones(1, 1),)).build_stage(rank, CPU)
    schedule = Schedule1F1B(stage, 4, loss_fn=lambda y, t: (y * y).sum())
    args, keywords = fed(rank, torch.ones(4, 1), torch.ones(4, 1), last=3)
    schedule.step(*args, **keywords)


run(4, body)
conclude(False, "", "a value may skip stages under 1F1B")
