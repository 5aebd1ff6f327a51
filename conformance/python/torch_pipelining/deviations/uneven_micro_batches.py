"""Rows that do not divide evenly: later micro-batches are smaller than the first, whose shape PyTorch uses for all.
(pytorch issue 126600)"""

import torch
from ranks import LOOPED, compare

M = 2


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    pipe.build(layers, M)
    x = torch.arange(5.0 if bug else 4.0).reshape(-1, 1)
    output = pipe.step(x)
    return {} if output is None else {"outputs": output.flatten().tolist()}


# Schedules with neighbouring stages on one rank run no forward alone: v_schedule_cannot_evaluate.py.
compare("outputs", program, lambda bug: {"outputs": [0, 1, 2, 3, 4][: 4 + bug]}, schedules=LOOPED,
        error="PipeliningShapeError")  # fmt: skip
