"""A parameter that stages of two ranks have (tied embeddings): each rank keeps the gradient of its copy, and an optimizer
moves the copies apart. PyTorch's pipelining leaves the sum to its user."""

import torch
from ranks import LOOPED, compare

M = 4


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    if bug:
        layers[1].weight = layers[0].weight  # one parameter of the model; a process has it in its own memory
    pipe.build(layers, M, loss=lambda y, t: y.sum())
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return pipe.gradients()


compare("gradients of a weight that both stages have", program, lambda bug: {f"stage {s}": [1 + bug] for s in range(2)},
        schedules=LOOPED)  # fmt: skip
