"""eval() of a schedule that puts neighbouring stages on one rank fails: the later stage passes a gradient back."""

import torch
from ranks import V, compare

M = 4


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1) for _ in range(4)], M, loss=lambda y, t: y.sum())
    x = torch.ones(M, 1)
    output = (pipe.eval if bug else pipe.step)(x, target=x)
    return {} if output is None else {"rows": len(output)}


compare("an evaluation", program, {"rows": M}, stages=4, schedules=V,
        error="AssertionError: can't (steal_bwd_input|set bwd input) if this stage doesn't have backward")  # fmt: skip
