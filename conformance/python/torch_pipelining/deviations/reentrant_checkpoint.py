"""A stage that is recomputed by a reentrant checkpoint, of which the user gives no shapes: their inference runs a backward to
the stage's inputs alone, which such a checkpoint refuses."""

import torch
from ranks import WHOLE, compare
from torch.utils.checkpoint import checkpoint

M = 4


class Recomputed(torch.nn.Linear):
    reentrant = False

    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=self.reentrant)


def program(pipe, bug):
    modules = [torch.nn.Linear(2, 2), Recomputed(2, 2)]
    modules[1].reentrant = bug
    pipe.build(modules, M, loss=lambda y, t: y.sum(), scale_grads=False)
    pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    return {"gradient of the bias": pipe.modules[1].bias.grad.tolist()} if pipe.has_last else {}


compare("a reentrant checkpoint", program, {"gradient of the bias": [M, M]}, schedules=WHOLE,
        error="RuntimeError: When use_reentrant=True|onnection")  # fmt: skip
