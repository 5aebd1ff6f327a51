"""scale_grads divides all of .grad at the end of each step: if two steps accumulate, the gradient of the first one is
divided by the number of micro-batches twice. (pytorch/torchtitan issue 1733)"""

import torch
from ranks import compare

M = 4


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    pipe.build(layers, M, loss=lambda y, t: y.sum())
    for _ in range(2 if bug else 1):  # each step's gradient is 1: the mean over micro-batches of dy/dw = x = 1
        pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return pipe.gradients()


compare("gradients that two steps accumulate", program, lambda bug: {"stage 0": [1 + bug], "stage 1": [1 + bug]})
