"""A stage that returns a parameter or a buffer of its own, such as a scale that later stages use: DualPipe frees what it has
sent, and with it the module's parameter."""

import dualpipe
import torch
from ranks import MICROBATCHES, conclude, control, dual_pipe, run


class First(torch.nn.Module):
    def __init__(self, copies):
        super().__init__()
        self.layer, self.copies = torch.nn.Linear(1, 1), copies
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        return self.layer(x), self.scale.clone() if self.copies else self.scale


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, y, scale):
        return self.layer(y) * scale


def elements(rank, copies):
    """How many elements the parameter has after an evaluation."""
    dualpipe.set_p2p_tensor_shapes([(1, 1), (1,)])
    dualpipe.set_p2p_tensor_dtype(torch.float32)
    modules = (First(copies), Second())
    with torch.no_grad():
        pipe = dual_pipe(modules if rank == 0 else modules[::-1])
        pipe.step(torch.ones(MICROBATCHES // 2, 1), num_chunks=MICROBATCHES, criterion=lambda y: y.sum())
    return modules[0].scale.numel()


control(run(2, lambda rank: elements(rank, True)) == [1, 1])
found = run(2, lambda rank: elements(rank, False))
conclude(found != [1, 1], f"after an evaluation a parameter of one element has {found[0]}", "an evaluation leaves the parameters")
