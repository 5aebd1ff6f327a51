"""A parameter that a stage adds to its input: the weight half makes the gradient that is being sent to the stage before the
parameter's .grad too, without a copy. What later micro-batches add to it reaches a stage that receives late. By default it is
a race, lost in one step of ten to fifty; with defer_pp_recv a slow forward decides it. Under 2.11, which has no such option,
400 steps were right."""

import inspect
import time

import torch
from ranks import CLASSES, compare, conclude

M = 4


class Scale(torch.nn.Module):
    def __init__(self, slow):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.slow, self.calls = slow, 0

    def forward(self, x):
        self.calls += 1
        if self.slow and self.calls > 3:  # after the inference of shapes and two micro-batches
            time.sleep(0.3)
        return x * self.weight


class Shift(torch.nn.Module):
    def __init__(self, copied):
        super().__init__()
        self.shift = torch.nn.Parameter(torch.zeros(1, 1))
        self.copied = copied

    def forward(self, x):
        return x + self.shift * 1 if self.copied else x + self.shift


def program(pipe, bug):
    stages = [Scale(False), Scale(True), Scale(False), Shift(not bug)]
    pipe.build(stages, M, loss=lambda y, t: (y * t).sum(), scale_grads=False, defer_pp_recv=True)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return pipe.gradients()


what = "gradients before a stage that adds a parameter to its input"
if "defer_pp_recv" not in inspect.signature(CLASSES["DualPipeV"]).parameters:
    conclude(f"torch {torch.__version__}", False, None, f"{what}: no schedule defers receiving")
compare(what, program, {f"stage {s}": [M] for s in range(4)}, stages=4, schedules=["DualPipeV"])
