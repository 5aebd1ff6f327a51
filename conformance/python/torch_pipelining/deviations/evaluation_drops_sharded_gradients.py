"""Stages that fully_shard has sharded, whose shapes are inferred: eval() infers them anew and then drops every gradient,
also those that steps have accumulated."""

import torch
from ranks import LOOPED, compare
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

M = 4  # of each replica


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(4)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    mesh = DeviceMesh.from_group(pipe.peers, "cpu")
    pipe.build(layers, M, loss=lambda y, t: y.mean(), scale_grads=False,
               replicate=lambda module: fully_shard(module, mesh=mesh, reshard_after_forward=False))  # fmt: skip
    x = torch.full((M, 1), 1.0 + 2 * pipe.replica)
    pipe.step(x, target=x)
    if bug:
        pipe.eval(x, target=x)
    pipe.step(x, target=x)
    return pipe.gradients()


compare("gradients of two steps of stages in FSDP, with an evaluation between them", program,
        {f"stage {s} of replica {r}": [4 * M] for s in range(4) for r in range(2)},
        stages=4, replicas=2, schedules=LOOPED)  # fmt: skip
