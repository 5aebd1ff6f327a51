"""Two parameters that a stage adds, without views, backward in halves: autograd.grad gives both one tensor, which becomes
.grad of both. The next micro-batch is added to it once for each of them, and it is divided twice. A whole backward, as
plain autograd, gives each its own."""

import torch
from ranks import HALVES, compare

M = 4


class Sum(torch.nn.Module):
    def __init__(self, added):
        super().__init__()
        self.left, self.right = (torch.nn.Parameter(torch.zeros(1)) for _ in range(2))
        self.added = added

    def forward(self, x):
        return x + (self.left + self.right) if self.added else x + self.left * 1 + self.right * 1


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1), Sum(bug), Sum(False), Sum(False)], M, loss=lambda y, t: (y * t).sum(), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return {name: gradients for name, gradients in pipe.gradients().items() if name == "stage 1"}


compare("gradients of two parameters that are added", program, {"stage 1": [M, M]}, stages=4, schedules=HALVES)
