"""A last stage that returns one of its parameters beside its result (for a penalty in the loss, say). After each
backward the stage's outputs are detached in place: that silently freezes the parameter, which misses later
micro-batches."""

import torch
from ranks import WHOLE, compare

M = 4


class Scale(torch.nn.Module):
    def __init__(self, returned):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.returned = returned

    def forward(self, x):
        return x * self.weight, self.weight if self.returned else self.weight * 1


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1), Scale(bug)], M, loss=lambda y, t: 0 * y[0].sum() + y[1].sum(), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return {"requires_grad": pipe.modules[1].weight.requires_grad} | pipe.gradients() if 1 in pipe.own else {}


# In halves it fails: parameter_as_an_output_in_halves.py.
compare("the gradient of a parameter that is an output", program, {"stage 1": [M], "requires_grad": True}, schedules=WHOLE)
