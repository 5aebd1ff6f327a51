"""An input passed by name, divided along dimension 1, is also an output of its stage: the pieces are views, and PyTorch
expects the strides of a copy of them (2.11), or sends them unchanged, which gloo rejects (2.15)."""

import torch
from ranks import compare
from torch.distributed.pipelining.microbatch import TensorChunkSpec

M = 2


class First(torch.nn.Module):
    def __init__(self, view):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.view = view

    def forward(self, x, columns):
        return self.layer(x), columns if self.view else columns.contiguous()


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x, columns):
        return self.layer(x) + columns.t()


def program(pipe, bug):
    specs = {"columns": TensorChunkSpec(1)}
    pipe.build([First(bug), Second()], M, loss=lambda y, t: (y * y).sum(), kwargs_chunk_spec=specs)
    pipe.step(torch.ones(4, 2), target=torch.ones(4, 2), **({"columns": torch.ones(2, 4)} if pipe.has_first else {}))
    return {"learned": pipe.modules[0].layer.weight.grad is not None} if 0 in pipe.own else {}


# ScheduleLoopedBFS takes no chunk specs; of halves see gradient_that_is_a_view.py.
compare("an input divided along dimension 1 that is handed on", program, {"learned": True},
        schedules=("GPipe", "1F1B", "Interleaved1F1B"),
        error="Error: .*contiguous|PipeliningShapeError")  # fmt: skip
