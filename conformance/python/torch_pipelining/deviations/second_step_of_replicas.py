"""Stages in DistributedDataParallel whose shapes are inferred: the run that infers them leaves DDP prepared for a reduction, so
that the first micro-batch's backward reduces as well as the last one's. DDP notes both, and the second step fails."""

import torch
from ranks import WHOLE, compare
from torch.nn.parallel import DistributedDataParallel

M = 4  # of each replica


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(4)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    given = None if bug else [torch.ones(1, 1)] * 5  # with shapes given nothing is inferred
    pipe.build(layers, M, loss=lambda y, t: y.mean(), shapes=given,
               replicate=lambda module: DistributedDataParallel(module, process_group=pipe.peers))  # fmt: skip
    x = torch.full((M, 1), 1.0 + 2 * pipe.replica)
    for _ in range(2):
        for layer in layers:
            layer.zero_grad()
        pipe.step(x, target=x)
    return pipe.gradients()


compare("the second step of stages in DDP", program, {f"stage {s} of replica {r}": [2] for s in range(4) for r in range(2)},
        stages=4, replicas=2, schedules=WHOLE, error="rebuilt parameter indices")  # fmt: skip
