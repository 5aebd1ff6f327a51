"""A model that computes its loss, and a loss function that does not look at the target: step() still requires one."""

import torch
from ranks import compare

M = 4


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    pipe.build(layers, M, loss=lambda y, _: y.sum(), scale_grads=False)
    x = torch.ones(M, 1)
    pipe.step(x, target=None if bug else x)
    return pipe.gradients()


compare("gradients of a loss without a target", program, {"stage 0": [M], "stage 1": [M]},
        error="TypeError: 'NoneType' object is not subscriptable|PipeliningMetadataError: .*target required")  # fmt: skip
