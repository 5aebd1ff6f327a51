"""Stages in DistributedDataParallel, backward in halves: the weight half adds up gradients by itself, so that DDP's hooks never
run. Of every stage but the first, each replica keeps the gradients of its own micro-batches. The control averages by hand."""

import torch
import torch.distributed as dist
from ranks import HALVES, compare
from torch.nn.parallel import DistributedDataParallel

M = 4  # of each replica


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(4)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    in_ddp = lambda module: DistributedDataParallel(module, process_group=pipe.peers)
    pipe.build(layers, M, loss=lambda y, t: y.mean(), replicate=in_ddp if bug else None)
    x = torch.full((M, 1), 1.0 + 2 * pipe.replica)
    pipe.step(x, target=x)
    if not bug:
        for layer in pipe.modules.values():
            dist.all_reduce(layer.weight.grad, group=pipe.peers)
            layer.weight.grad /= 2
    return pipe.gradients()


compare("gradients of stages in DDP", program, {f"stage {s} of replica {r}": [2] for s in range(4) for r in range(2)},
        stages=4, replicas=2, schedules=HALVES)  # fmt: skip
