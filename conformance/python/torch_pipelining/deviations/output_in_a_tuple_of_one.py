"""A last stage that returns a tuple of one tensor: the step gives it to the loss function, the inference of shapes the tensor.
(A list of two becomes a tuple there.)"""

import torch
from ranks import EVERY, compare

M = 4


class Stage(torch.nn.Module):
    def __init__(self, in_a_tuple):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.in_a_tuple = in_a_tuple

    def forward(self, x):
        return (x * self.weight,) if self.in_a_tuple else x * self.weight


def program(pipe, bug):
    def loss(output, target):
        if bug:
            (output,) = output  # a micro-batch has two rows
        return output.sum()

    pipe.build([Stage(bug and s == 3) for s in range(4)], M, loss=loss, scale_grads=False)
    pipe.step(torch.ones(2 * M, 1), target=torch.ones(2 * M, 1))
    return pipe.gradients()


compare("a last stage that returns a tuple of one", program, {f"stage {s}": [2 * M] for s in range(4)}, stages=4, schedules=EVERY,
        error="too many values to unpack")  # fmt: skip
