"""eval() of a schedule that has a loss function, without a target: PyTorch still requires one."""

import torch
from ranks import LOOPED, compare

M = 2


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)], M, loss=torch.nn.functional.mse_loss)
    x = torch.ones(4, 1)
    output = pipe.eval(x, target=None if bug else x)
    return {} if output is None else {"rows": len(output)}


compare("an evaluation", program, {"rows": 4}, schedules=LOOPED,
        error="TypeError: 'NoneType' object is not subscriptable")  # fmt: skip
