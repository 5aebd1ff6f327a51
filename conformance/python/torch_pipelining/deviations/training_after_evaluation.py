"""eval() first, then step(): the receive buffers for activations were created without gradients, and stay so."""

import torch
from ranks import LOOPED, compare

M = 2


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    pipe.build(layers, M, loss=lambda y, t: y.sum(), scale_grads=False)
    x = torch.ones(4, 1)
    if bug:
        pipe.eval(x, target=x)
    pipe.step(x, target=x)
    return pipe.gradients()


compare("gradients of a step after an evaluation", program, {"stage 0": [4], "stage 1": [4]}, schedules=LOOPED,
        error="ValueError: grad requires non-empty inputs|RuntimeError: .*(not require grad|has gradients None)")  # fmt: skip
