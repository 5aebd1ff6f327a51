"""Two parameters that a stage adds through views: their gradients share memory in autograd, and each further micro-batch is
added to it once for each of the two. DualPipe accumulates in .grad: silent."""

import torch
from ranks import MICROBATCHES, conclude, control, train


class Second(torch.nn.Module):
    def __init__(self, views):
        super().__init__()
        self.views = views
        self.left, self.right = (torch.nn.Parameter(torch.zeros(3)) for _ in range(2))

    def forward(self, x):
        return x + (self.left.view(1, 3) + self.right.view(1, 3) if self.views else self.left + self.right)


def gradient(views):
    stages = train(lambda: (torch.nn.Linear(3, 3), Second(views)), [torch.ones(MICROBATCHES, 3)], [(1, 3)])
    return stages[1]["left"][0].item()


control(gradient(views=False) == MICROBATCHES)
found = gradient(views=True)
conclude(found != MICROBATCHES, f"the gradient, 1 in each of {MICROBATCHES} micro-batches, is {found}", "the gradient is right")
