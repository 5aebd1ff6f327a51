"""A stage that returns a named tuple, as torch.sort() and torch.max() do: the inference of shapes takes it for a tuple of tensors,
the step for one value that is no tensor."""

import torch
from ranks import EVERY, compare

M = 4


class Stage(torch.nn.Module):
    def __init__(self, sorts):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.sorts = sorts

    def forward(self, x):
        y = x * self.weight
        if self.sorts is None:
            return y
        result = y.sort()
        return result if self.sorts else tuple(result)


def program(pipe, bug):
    pipe.build([Stage(None), Stage(None), Stage(None), Stage(bug)], M, loss=lambda y, t: y[0].sum(), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return pipe.gradients()


compare("a last stage that returns the result of sort()", program, {f"stage {s}": [M] for s in range(4)}, stages=4,
        schedules=EVERY, error="has no attribute|Number of values")  # fmt: skip
