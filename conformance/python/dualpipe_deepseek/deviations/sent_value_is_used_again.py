"""A stage returns a value that it also uses itself, as in a U-Net. DualPipe frees what it has sent, by giving the tensor
empty data, which autograd has saved for the stage's backward. With one column the backward broadcasts it to nothing, and
the gradient is 0: silent. With more columns it fails. DualPipe asserts only that what it frees is no view."""

import torch
from ranks import MICROBATCHES, conclude, control, train


class First(torch.nn.Module):
    def __init__(self, copies):
        super().__init__()
        self.copies = copies
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, x):
        h = torch.relu(x * self.scale)
        return h.clone() if self.copies else h, h * self.scale


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(1))

    def forward(self, h, scaled):
        return 0 * h + scaled + self.bias


def gradient(copies):
    batch = [torch.ones(MICROBATCHES, 1)]
    return train(lambda: (First(copies), Second()), batch, [(1, 1), (1, 1)])[0]["scale"].item()


right = 2 * MICROBATCHES  # scale is used twice
control(gradient(copies=True) == right)
found = gradient(copies=False)
conclude(found != right, f"the gradient is {found} for {right}", "the gradient is right")
