"""A stage that initialises a parameter from the first activation that it sees (ActNorm), and notes that in an attribute:
the inference of shapes runs it on uninitialised memory (2.15) or zeros (2.11), and only buffers are restored."""

import torch
from ranks import LOOPED, compare

M = 4


class Norm(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.zeros(1))
        self.done = False

    def forward(self, x):
        if not self.done:
            with torch.no_grad():
                self.scale.copy_(x.mean())
            self.done = True
        return x * self.scale


def program(pipe, bug):
    first = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(first.weight)
    given = None if bug else [torch.ones(1, 1, requires_grad=s > 0) for s in range(3)]
    pipe.build([first, Norm()], M, loss=lambda y, t: y.sum(), shapes=given)
    pipe.step(torch.full((M, 1), 3.0), target=torch.ones(M, 1))
    return {"scale": pipe.modules[1].scale.item()} if pipe.has_last else {}


compare("a parameter initialised by the first activation, a 3", program, {"scale": 3.0}, schedules=LOOPED)
