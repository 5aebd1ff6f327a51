"""DualPipeVModule: a value of one element that the last rank's first stage gives and its second stage ignores has no gradient,
which its backward takes for 1."""

import deepspeed.pipe
import torch
from ranks import conclude, data, engine_of, fail, line, run

M = 4


class Gives(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.extra = line(), torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.layer(x), self.extra * x.sum()


class Takes(torch.nn.Module):
    def __init__(self, ignores):
        super().__init__()
        self.layer, self.ignores = line(), ignores

    def forward(self, given):
        y, extra = given
        return self.layer(y) if self.ignores else self.layer(y) + 0 * extra


def body(ignores):
    """The gradient of a parameter that does not matter: the learning rate is 1."""
    gives = Gives()
    engine = engine_of([line(), gives, Takes(ignores), line()], M, module_class=deepspeed.pipe.DualPipeVModule)
    engine.train_batch(data(*[torch.ones(1, 1)] * M))
    return 1 - gives.extra.item()


if not hasattr(deepspeed.pipe, "DualPipeVModule"):
    conclude(False, None, "there is no DualPipeVModule")
control, found = (run(2, lambda _, i=ignores: body(i))[1] for ignores in (False, True))
if control != 0:
    fail(f"the gradient of a parameter that is multiplied by 0 is {control}")
conclude(found != 0, f"the gradient of a parameter that the loss ignores is {found}", "an ignored value has no gradient")
