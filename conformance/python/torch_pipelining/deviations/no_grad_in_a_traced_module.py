"""A module that uses torch.no_grad() in its forward: traced and cut by pipeline(), the part under it is lost."""

import contextlib

import torch
from ranks import NONE, compare
from torch.distributed.pipelining import pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self, no_grad):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.register_buffer("seen", torch.zeros(()))
        self.context = torch.no_grad if no_grad else contextlib.nullcontext

    def forward(self, x):
        with self.context():
            self.seen.add_(1)
        y = self.layer(x)
        pipe_split()
        return y * self.layer.weight


def program(_, bug):
    return {"stages": pipeline(Model(bug), (torch.ones(1, 1),)).num_stages}


compare("torch.no_grad() in a module", program, {"stages": 2}, schedules=NONE,
        error="RuntimeError: Node .* nonexistent|AssertionError: unexpected placeholder")  # fmt: skip
