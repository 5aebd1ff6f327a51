"""A stage that begins with a change in place (ReLU(inplace=True) behind a layer of the stage before): it gets a leaf that
requires a gradient, which autograd does not let it change. The whole model may."""

import torch
from ranks import EVERY, compare

M = 4


def program(pipe, bug):
    stages = [torch.nn.Sequential(torch.nn.ReLU(inplace=bug and s == 1), torch.nn.Linear(1, 1, bias=False)) for s in range(4)]
    for stage in stages:
        torch.nn.init.ones_(stage[1].weight)
    pipe.build(stages, M, loss=lambda y, t: y.sum(), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return pipe.gradients()


compare("a stage that begins in place", program, {f"stage {s}": [M] for s in range(4)}, stages=4, schedules=EVERY,
        error="a leaf Variable that requires grad is being used in an in-place operation")  # fmt: skip
