"""A stage that begins in place, with ReLU(inplace=True): its input is the tensor that was received, a leaf that requires a
gradient."""

import torch
from ranks import MICROBATCHES, conclude, control, fails, train


def step(inplace, expected=None):
    stages = lambda: (torch.nn.Linear(1, 1), torch.nn.Sequential(torch.nn.ReLU(inplace), torch.nn.Linear(1, 1)))
    return train(stages, [torch.ones(MICROBATCHES, 1)], [(1, 1)], expected=expected)


control(step(inplace=False)[1]["1.bias"].item() == MICROBATCHES)
why = fails(step, inplace=True, expected="leaf Variable that requires grad")
conclude(why, f"a stage that begins in place: {why}", "a stage may begin in place")
