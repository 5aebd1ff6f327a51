"""An output that is not contiguous, and no view, such as the ReLU of a transposed tensor: it is sent unchanged, which gloo (and
NCCL) rejects."""

import torch
from ranks import MICROBATCHES, conclude, fails, train


class First(torch.nn.Module):
    def __init__(self, turned):
        super().__init__()
        self.layer, self.turned = torch.nn.Linear(3, 3), turned

    def forward(self, x):
        y = self.layer(x).t()
        return torch.relu(y if self.turned else y.contiguous())


def step(turned, expected=None):
    batch = [torch.ones(2 * MICROBATCHES, 3)]
    return train(lambda: (First(turned), torch.nn.Linear(2, 1)), batch, [(3, 2)], expected=expected)


step(turned=False)
why = fails(step, turned=True, expected="contiguous")
conclude(why, f"an output that is not contiguous: {why}", "an output need not be contiguous")
