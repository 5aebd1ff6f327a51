"""A model that assigns to its buffer (self.count = self.count + 1): traced, the assignment comes last, and so is the last
stage's, in a buffer of its own. The first stage, which reads the buffer, always finds the initial value."""

import torch
from ranks import WHOLE, compare
from torch.distributed.pipelining import pipe_split, pipeline

M = 4


class Model(torch.nn.Module):
    def __init__(self, assigned):
        super().__init__()
        self.first, self.second = (torch.nn.Linear(1, 1, bias=False) for _ in range(2))
        self.register_buffer("count", torch.zeros(1))
        self.assigned = assigned
        for layer in (self.first, self.second):
            torch.nn.init.ones_(layer.weight)

    def forward(self, x):
        if self.assigned:
            self.count = self.count + 1
        else:
            self.count.add_(1)
        x = self.first(x) + self.count
        pipe_split()
        return self.second(x)


def program(pipe, bug):
    pipe.build(pipeline(Model(bug), (torch.ones(1, 1),)), M, loss=lambda y, t: y.sum())
    output = pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return {"outputs": output.flatten().tolist()} if pipe.has_last else {}


compare("outputs to which the number of a micro-batch is added", program, {"outputs": [2, 3, 4, 5]}, schedules=WHOLE,
        error="has gradients None")  # fmt: skip
