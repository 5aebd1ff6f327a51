"""A parameter that reaches the stage's outputs without meeting the path of the input (a learned prompt, say, that is a
separate output), backward in halves: its gradient is silently lost."""

import torch
from ranks import HALVES, compare

M = 4


class Prompted(torch.nn.Module):
    def __init__(self, apart):
        super().__init__()
        self.prompt = torch.nn.Parameter(torch.ones(1, 1))
        self.apart = apart

    def forward(self, x):
        return x * 2, self.prompt * 3 if self.apart else x * 0 + self.prompt * 3


class Sum(torch.nn.Module):
    def forward(self, x, prompt):
        return x + prompt


def program(pipe, bug):
    modules = [torch.nn.Linear(1, 1), Prompted(bug), Sum(), torch.nn.Linear(1, 1, bias=False)]
    torch.nn.init.ones_(modules[3].weight)
    pipe.build(modules, M, loss=lambda y, t: y.sum(), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return {name: gradient for name, gradient in pipe.gradients().items() if name == "stage 1"}


compare("the gradient of a prompt", program, {"stage 1": [3 * M]}, stages=4, schedules=HALVES)
