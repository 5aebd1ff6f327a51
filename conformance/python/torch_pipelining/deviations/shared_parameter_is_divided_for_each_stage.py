"""A parameter of two stages of one rank (tied embeddings under a V-shaped schedule, say): the end of a step divides the
gradients of each stage, and so this one twice; or one stage's end comes before the other's last backward."""

import torch
from ranks import V, compare

M = 4


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(4)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    if bug:
        layers[3].weight = layers[0].weight
    pipe.build(layers, M, loss=lambda y, t: y.sum())
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return pipe.gradients()


def right(bug):
    """Both uses have a gradient of 1."""
    return {f"stage {s}": [2 if bug and s in (0, 3) else 1] for s in range(4)}


compare("gradients of stages of which 0 and 3 have one weight, on one rank", program, right, stages=4, schedules=V)
