"""A traced pipe sends a value directly to the stage that uses it, past the stages between. Under 1F1B the first stage
waits until the last one receives it, and the last one until the first receives an earlier gradient: a deadlock."""

import torch
from ranks import compare
from torch.distributed.pipelining import pipe_split, pipeline

M = 4


class Model(torch.nn.Module):
    def __init__(self, skip):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(1, 1) for _ in range(5))
        self.skip = skip

    def forward(self, x):
        skip, x = self.layers[4](x), self.layers[0](x)
        if not self.skip:
            x = x + skip
        for layer in self.layers[1:4]:
            pipe_split()
            x = layer(x)
        return x + skip if self.skip else x


PIPES = {bug: pipeline(Model(bug), (torch.ones(1, 1),)) for bug in (False, True)}  # traced once, before the ranks are forked


def program(pipe, bug):
    pipe.build(PIPES[bug], M, loss=lambda y, t: (y * y).sum())
    output = pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return {} if output is None else {"rows": len(output)}


# Schedules of several stages a rank refuse such a value.
compare("a value that skips stages", program, {"rows": M}, stages=4, schedules=("GPipe", "1F1B"),
        error="RuntimeError: .*([Tt]imed out|[Tt]imeout)|no answer")  # fmt: skip
