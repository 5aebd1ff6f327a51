"""Two steps with batches of different sizes (the last one of an epoch, say): PyTorch keeps the shapes of the first
step. (pytorch issue 159942)"""

import torch
from ranks import compare

M = 2


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)], M, loss=lambda y, t: (y - t).pow(2).sum())
    for rows in (4, 2 if bug else 4):
        x = torch.ones(rows, 1)
        output = pipe.step(x, target=x)
    return {} if output is None else {"rows": len(output)}


# Neighbouring stages on one rank hand on their tensors themselves: V-shaped schedules of two stages have no buffers.
compare("the outputs of a second step", program, lambda bug: {"rows": 2 if bug else 4},
        error="RuntimeError: Mismatch in shape|PipeliningShapeError|killed by signal")  # fmt: skip
