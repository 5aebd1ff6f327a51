"""eval() divides the gradients of the step before it by the number of micro-batches."""

import torch
from ranks import LOOPED, compare

M = 4


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    pipe.build(layers, M, loss=lambda y, t: y.sum())
    x = torch.ones(M, 1)
    pipe.step(x, target=x)
    if bug:
        pipe.eval(x, target=x)
    return pipe.gradients()


# Neighbouring stages on one rank cannot be evaluated: v_schedule_cannot_evaluate.py.
compare("gradients after an evaluation", program, {"stage 0": [1], "stage 1": [1]}, schedules=LOOPED)
