"""A layer that its stage uses twice in a row (a recurrent one), backward in halves: the weight half adds the gradient
along the path through both uses again, although the input half has already summed it. (pytorch issue 180952)"""

import torch
from ranks import HALVES, compare

M = 4


class Twice(torch.nn.Module):
    def __init__(self, twice):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(self.layer.weight)
        self.twice = twice

    def forward(self, x):
        return self.layer(self.layer(x) if self.twice else x)


def program(pipe, bug):
    pipe.build([Twice(bug) for _ in range(4)], M, loss=lambda y, t: y.sum(), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return pipe.gradients()


compare("gradients of layers that are used twice", program, lambda bug: {f"stage {s}": [M * (1 + bug)] for s in range(4)},
        stages=4, schedules=HALVES)  # fmt: skip
