"""A last stage that returns one of its parameters beside its result, backward in halves: the input half looks for the
operator that computed the output, and there is none."""

import torch
from ranks import compare

M = 2


class Scale(torch.nn.Module):
    def __init__(self, returned):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.returned = returned

    def forward(self, x):
        return x * self.weight, self.weight if self.returned else x * 0 + self.weight


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1), Scale(bug)], M, loss=lambda y, t: 0 * y[0].sum() + y[1].sum(), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return pipe.gradients() if 1 in pipe.own else {}


compare("the gradient of a parameter that is an output", program, {"stage 1": [M]},
        schedules=("InterleavedZeroBubble",), error="KeyError: <AccumulateGrad")  # fmt: skip
