"""An input that requires a gradient and that all micro-batches share (_Replicate): after each backward PyTorch sets its
.grad to None, so that the user finds no gradient. (The comment in the code says that it accumulates there.)"""

import torch
from ranks import LOOPED, compare
from torch.distributed.pipelining.microbatch import _Replicate

M = 4


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x, scale):
        return x * self.weight * scale


def program(pipe, bug):
    x, scale = torch.ones(M, 1), (torch.ones(1) if bug else torch.ones(M, 1)).requires_grad_()
    specs = {"kwargs_chunk_spec": {"scale": _Replicate()}} if bug else {}
    pipe.build([First(), torch.nn.Identity()], M, loss=lambda y, t: y.sum(), **specs)
    pipe.step(x, target=x, **({"scale": scale} if pipe.has_first else {}))
    return {"gradient": scale.grad if scale.grad is None else scale.grad.sum().item()} if pipe.has_first else {}


# ScheduleLoopedBFS takes no chunk specs; V-shaped ones give a keyword to the last stage too.
compare("gradient of an input that all micro-batches share", program, {"gradient": M},
        schedules=[name for name in LOOPED if name != "LoopedBFS"])  # fmt: skip
