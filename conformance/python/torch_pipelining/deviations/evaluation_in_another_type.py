"""An eval() after one in another element type (the modules cast, or autocast switched on): later stages keep buffers of the
first type, into which they receive the bytes of the second one. A second step under autocast fares alike."""

import torch
from ranks import WHOLE, compare

M = 2


class Cast(torch.nn.Module):
    """The first stage gives its parameter's type."""

    def __init__(self, last):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.last = last

    def forward(self, x):
        return x.float() * self.weight.float() if self.last else x.to(self.weight.dtype) * self.weight


def program(pipe, bug):
    pipe.build([Cast(False), Cast(True)], M)
    x = torch.ones(M, 1)
    pipe.eval(x)
    for module in pipe.modules.values():
        module.to(torch.bfloat16 if bug else torch.float32)
    output = pipe.eval(x)
    return {"outputs": output.flatten().tolist()} if pipe.has_last else {}


compare("outputs of a second evaluation", program, {"outputs": [1.0, 1.0]}, schedules=WHOLE,
        error="PipeliningShapeError")  # fmt: skip
