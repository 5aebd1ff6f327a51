"""A buffer that is an expanded view (a mask for all heads, say): PyTorch restores buffers in place after the inference of
shapes, which such memory refuses."""

import torch
from ranks import EVERY, compare

M = 4


class Stage(torch.nn.Module):
    def __init__(self, expanded):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        mask = torch.ones(1, 1).expand(1, 3)
        self.register_buffer("mask", mask if expanded else mask.clone())

    def forward(self, x):
        return x * self.weight * self.mask.mean()


def program(pipe, bug):
    pipe.build([Stage(bug) for _ in range(4)], M, loss=lambda y, t: y.sum(), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return pipe.gradients()


compare("stages with an expanded buffer", program, {f"stage {s}": [M] for s in range(4)}, stages=4, schedules=EVERY,
        error="more than one element of the written-to tensor")  # fmt: skip
