"""A stage that returns a view (a transposed tensor, a chunk), its successor on the same rank, backward in halves: the input
half detaches outputs in place, which PyTorch rejects for views. (pytorch issue 142229 concerned whole backwards)"""

import torch
from ranks import V, compare

M = 4


class Chunk(torch.nn.Module):
    def __init__(self, view):
        super().__init__()
        self.layer = torch.nn.Linear(2, 4)
        self.view = view

    def forward(self, x):
        y = self.layer(x).chunk(2, dim=1)[0]
        return y if self.view else y * 1


def program(pipe, bug):
    pipe.build([torch.nn.Linear(2, 2), Chunk(bug), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)], M, loss=lambda y, t: y.sum())
    pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    return {"learned": all(p.grad is not None for p in pipe.modules[1].parameters())} if 1 in pipe.own else {}


compare("a stage that returns a view", program, {"learned": True}, stages=4, schedules=V,
        error="RuntimeError: Can't detach views in-place")  # fmt: skip
