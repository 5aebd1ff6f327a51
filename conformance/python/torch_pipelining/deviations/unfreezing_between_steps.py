"""Parameters that are unfrozen between two steps (gradual unfreezing): in the first step PyTorch determines that the
next stage sends no gradient back, and keeps this result."""

import torch
from ranks import compare

M = 4


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    layers[0].requires_grad_(not bug)
    pipe.build(layers, M, loss=lambda y, t: y.sum(), scale_grads=False)
    x = torch.ones(M, 1)
    for _ in range(2):
        for layer in layers:
            layer.weight.grad = None
        pipe.step(x, target=x)
        layers[0].requires_grad_(True)
    return {name: gradient for name, gradient in pipe.gradients().items() if name == "stage 0"}


compare("the gradient of an unfrozen stage", program, {"stage 0": [M]}, error="AssertionError: A GradientEdge root requires")
