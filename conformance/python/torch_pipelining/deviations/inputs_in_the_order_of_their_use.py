"""A model of two inputs that uses the second one first, traced and cut by pipeline(): its first stage takes them in the
order of their use, but the schedule passes them in the order of the model."""

import torch
from ranks import LOOPED, compare
from torch.distributed.pipelining import pipe_split, pipeline

M = 2


class Model(torch.nn.Module):
    def __init__(self, second_first):
        super().__init__()
        self.second_first = second_first

    def forward(self, x, y):
        z = 2 * y - x if self.second_first else -x + 2 * y
        pipe_split()
        return z * 1


PIPES = {bug: pipeline(Model(bug), (torch.ones(1, 1), torch.ones(1, 1))) for bug in (False, True)}  # traced once, before the ranks are forked


def program(pipe, bug):
    pipe.build(PIPES[bug], M)
    output = pipe.step(torch.ones(M, 1), torch.full((M, 1), 10.0))
    return {} if output is None else {"2 * 10 - 1": output.flatten().tolist()}


compare("a model of two inputs", program, {"2 * 10 - 1": [19, 19]}, schedules=LOOPED)
