"""A buffer that forward replaces by a new tensor (self.mean = 0.9 * self.mean + ...): PyTorch restores the buffer's old tensor
after the inference of shapes, not what the module has by then, so that running statistics include that run."""

import torch
from ranks import compare

M = 4


class Counts(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count = self.count + 1
        return x * self.weight


def program(pipe, bug):
    given = None if bug else [torch.ones(1, 1, requires_grad=s > 0) for s in range(5)]
    pipe.build([Counts() for _ in range(4)], M, loss=lambda y, t: y.sum(), shapes=given)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return {f"stage {s}": module.count.item() for s, module in pipe.modules.items()}


compare("forwards that buffers count", program, {f"stage {s}": M for s in range(4)}, stages=4)
