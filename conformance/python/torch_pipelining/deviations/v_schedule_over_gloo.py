"""A V-shaped schedule begins with a message from a rank to itself, which gloo rejects."""

import ranks
import torch
from ranks import V, compare

M = 4


def program(pipe, bug):
    if bug:
        ranks.without_messages_to_itself = lambda stage: stage
    pipe.build([torch.nn.Linear(1, 1) for _ in range(4)], M, loss=lambda y, t: y.sum())
    x = torch.ones(M, 1)
    output = pipe.step(x, target=x)
    return {} if output is None else {"rows": len(output)}


compare("a step", program, {"rows": M}, stages=4, schedules=V, error="RuntimeError: .*Pair is not connected")
