"""A hook that a stage's forward registers on its input: the next step reuses the input's receive buffer, with the hooks of
earlier steps. (pytorch issue 185331)"""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

M = 2


class Hooked(torch.nn.Linear):
    calls = 0

    def count(self, gradient):
        self.calls += 1

    def forward(self, x):
        if x.requires_grad:
            x.register_hook(self.count)
        return super().forward(x)


def body(rank):
    module = Hooked(1, 1)
    schedule = Schedule1F1B(PipelineStage(module, rank, 2, CPU), M, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(M, 1), torch.ones(M, 1))
    calls = []
    for _ in range(3):
        module.calls = 0
        schedule.step(*args, **keywords)
        calls.append(module.calls)
    return calls


_, calls = run(2, body)
conclude(calls[1:] != [M, M], f"hooks on the input of a stage are called {calls} times in three steps of {M} micro-batches",
         f"hooks on the input of a stage are called {M} times in each step")
