"""A last stage that returns one of its parameters beside its result (for a penalty in the loss, say). After each
backward the stage's outputs are detached in place: that silently freezes the parameter, which misses later
micro-batches."""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

M = 4


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.weight, self.weight


def body(rank):
    stage = PipelineStage((torch.nn.Linear(1, 1), Scale())[rank], rank, 2, CPU)
    schedule = Schedule1F1B(stage, M, loss_fn=lambda y, t: 0 * y[0].sum() + y[1].sum(), scale_grads=False)
    args, keywords = fed(rank, torch.ones(M, 1), torch.ones(M, 1))
    schedule.step(*args, **keywords)
    return (stage.submod.weight.grad.item(), stage.submod.weight.requires_grad) if rank == 1 else None


_, (gradient, learns) = run(2, body)
conclude((gradient, learns) != (M, True), f"gradient {gradient} for {M}, requires_grad is {learns}",
         "the parameter gets its gradient")
