"""An input divided along dimension 1: its pieces are views, and PyTorch expects the strides of a copy of them."""

import torch
from ranks import LOOPED, compare
from torch.distributed.pipelining.microbatch import TensorChunkSpec

M = 2


class Scaled(torch.nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.columns = columns

    def forward(self, x):
        y = x * self.weight
        return (y.t() if self.columns else y).contiguous()


def program(pipe, bug):
    specs = (TensorChunkSpec(1 if bug else 0),)
    last = torch.nn.Linear(2, 2, bias=False)
    torch.nn.init.ones_(last.weight)
    pipe.build([Scaled(bug), last], M, loss=lambda y, t: y.sum(), args_chunk_spec=specs, scale_grads=False)
    pipe.step(torch.ones((2, 4) if bug else (4, 2)), target=torch.ones(4, 2))
    return {name: gradients for name, gradients in pipe.gradients().items() if name == "stage 0"}


# ScheduleLoopedBFS takes no chunk specs.
compare("an input divided along dimension 1", program, {"stage 0": [16]},
        schedules=[name for name in LOOPED if name != "LoopedBFS"],
        error="PipeliningShapeError")  # fmt: skip
