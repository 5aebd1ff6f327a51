"""An input divided along dimension 1: its pieces are views, and PyTorch expects the strides of a copy of them."""

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.pipelining.microbatch import TensorChunkSpec


class Columns(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return (x * self.weight).t()


def body(_):
    schedule = ScheduleGPipe(PipelineStage(Columns(), 0, 1, CPU), 2, loss_fn=lambda y, t: y.sum(),
                             args_chunk_spec=(TensorChunkSpec(1),))
    schedule.step(torch.ones(2, 4), target=torch.ones(4, 2))


run(1, body)
conclude(False, "", "an input is divided along dimension 1")
