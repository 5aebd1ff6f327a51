"""Stages whose shapes the user gives (input_args) keep the receive buffers of these shapes: an eval() of fewer rows
returns outputs of as many rows as those (2.15), or is rejected (2.11). More rows than given abort a rank (2.15)."""

import torch
from ranks import LOOPED, compare

M = 2


def program(pipe, bug):
    like = [torch.ones(2, 1), *[torch.ones(2, 1, requires_grad=True) for _ in range(2)]]
    pipe.build([torch.nn.Linear(1, 1) for _ in range(2)], M, loss=lambda y, t: y.sum(), shapes=like)
    shapes = []
    for call, rows in ((pipe.step, 4), (pipe.eval, 4), (pipe.eval, 2 if bug else 4)):
        x = torch.ones(rows, 1)
        output = call(x, target=x)
        shapes.append(None if output is None else list(output.shape))
    return {"shapes": shapes} if pipe.has_last else {}


compare("shapes of the outputs of a step and two evaluations", program,
        lambda bug: {"shapes": [[4, 1], [4, 1], [2 if bug else 4, 1]]}, schedules=LOOPED,
        error="PipeliningShapeError")  # fmt: skip
