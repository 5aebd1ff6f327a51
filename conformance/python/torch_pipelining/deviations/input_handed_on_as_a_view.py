"""An input passed by name, divided along dimension 1, is also an output of its stage: the pieces are views, and PyTorch
expects the strides of a copy of them (2.11), or sends them unchanged, which gloo rejects (2.15)."""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.pipelining.microbatch import TensorChunkSpec


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x, columns):
        return self.layer(x), columns


class Second(torch.nn.Module):
    def forward(self, x, columns):
        return x * columns.t()


def body(rank):
    stage = PipelineStage((First, Second)[rank](), rank, 2, CPU)
    schedule = ScheduleGPipe(stage, 2, loss_fn=lambda y, t: y.sum(), kwargs_chunk_spec={"columns": TensorChunkSpec(1)})
    if rank == 0:
        schedule.step(torch.ones(4, 2), columns=torch.ones(2, 4))
    else:
        schedule.step(target=torch.ones(4, 2))


run(2, body)
conclude(False, "", "an input divided along dimension 1 is handed on")
