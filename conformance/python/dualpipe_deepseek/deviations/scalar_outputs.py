"""Outputs without dimensions, such as a loss that the model computes, cannot be joined: step(return_outputs=True) fails after
all computation."""

import dualpipe
import torch
from ranks import MICROBATCHES, conclude, dual_pipe, fails, run


class Last(torch.nn.Module):
    def __init__(self, scalar):
        super().__init__()
        self.layer, self.scalar = torch.nn.Linear(1, 1), scalar

    def forward(self, x):
        y = self.layer(x)
        return y.sum() if self.scalar else y


def body(rank, scalar):
    dualpipe.set_p2p_tensor_shapes([(1, 1)])
    dualpipe.set_p2p_tensor_dtype(torch.float32)
    modules = (torch.nn.Linear(1, 1), Last(scalar))
    with torch.no_grad():
        pipe = dual_pipe(modules if rank == 0 else modules[::-1])
        pipe.step(torch.ones(MICROBATCHES // 2, 1), num_chunks=MICROBATCHES, return_outputs=True)


def step(scalar, expected=None):
    run(2, lambda rank: body(rank, scalar), expected)


step(scalar=False)
why = fails(step, scalar=True, expected="zero-dimensional tensor")
conclude(why, f"outputs without dimensions: {why}", "outputs without dimensions are joined")
