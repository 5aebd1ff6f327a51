"""A stage receives a value on which its loss does not depend. Its gradient is None, which DualPipe leaves out when it sends;
the stage before waits for it all the same, and takes the next message for it."""

import torch
from ranks import MICROBATCHES, conclude, fails, train


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)

    def forward(self, x):
        return self.left(x), self.right(x)


class Second(torch.nn.Module):
    def __init__(self, uses_both):
        super().__init__()
        self.uses_both = uses_both
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, left, right):
        return self.layer(left + right if self.uses_both else left)


def step(uses_both, expected=None):
    return train(lambda: (First(), Second(uses_both)), [torch.ones(MICROBATCHES, 1)], [(1, 1), (1, 1)], expected=expected)


step(uses_both=True)
why = fails(step, uses_both=False, expected="imed out")
conclude(why, f"the step does not end: {why}", "a value may be ignored")
