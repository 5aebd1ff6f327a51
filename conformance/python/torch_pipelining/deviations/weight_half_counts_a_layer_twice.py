"""A layer that its stage uses twice in a row (a recurrent one), backward in halves: the weight half adds the gradient
along the path through both uses again, although the input half has already summed it. (pytorch issue 180952)"""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble


class Twice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(self.layer.weight)

    def forward(self, x):
        return self.layer(self.layer(x))


def body(rank):
    stage = PipelineStage(Twice(), rank, 2, CPU)
    schedule = ScheduleInterleavedZeroBubble([stage], 2, loss_fn=lambda y, t: y.sum(), scale_grads=False)
    args, keywords = fed(rank, torch.ones(2, 1), torch.ones(2, 1))
    schedule.step(*args, **keywords)
    return stage.submod.layer.weight.grad.item()


_, gradient = run(2, body)  # of w * w * x at w = x = 1, over two micro-batches
conclude(gradient != 4, f"the gradient of a layer used twice is {gradient} for 4", "the gradient of a layer used twice is 4")
