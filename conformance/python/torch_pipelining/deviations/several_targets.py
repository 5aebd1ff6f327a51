"""Two targets for each micro-batch, which the user gives apart (target_mbs): the loss function gets the pair as it was given,
except where the last stage's shapes are inferred, which takes tensors only."""

import torch
from ranks import LOOPED, compare

M = 4


class Stage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.weight


def program(pipe, bug):
    ones = torch.ones(1, 1)
    like = None if bug else [torch.ones(1, 1, requires_grad=s > 0) for s in range(3)]
    pipe.build([Stage(), Stage()], M, loss=lambda y, t: (y * t[0] + y * t[1]).sum(), shapes=like, scale_grads=False)
    given = {"arg_mbs": [(ones,)] * M} if pipe.has_first else {}
    pipe.step(**given, **({"target_mbs": [[ones, 2 * ones]] * M} if pipe.has_last else {}))
    return pipe.gradients()


compare("two targets for each micro-batch", program, {"stage 0": [3.0 * M], "stage 1": [3.0 * M]}, schedules=LOOPED,
        error="Unsupported type .* for _to_tensor", argument="target_mbs")  # fmt: skip
