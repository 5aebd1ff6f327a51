"""An input that is None: step() declares its inputs as optional and divides None among the micro-batches, but the first
stage's backward asks every input for its gradient."""

import torch
from ranks import MICROBATCHES, conclude, fails, train


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x, bias):
        return self.layer(x) if bias is None else self.layer(x) + bias


def step(bias, expected=None):
    return train(lambda: (First(), torch.nn.Linear(1, 1)), [torch.ones(MICROBATCHES, 1), bias], [(1, 1)], expected=expected)


step(bias=torch.ones(MICROBATCHES, 1))
why = fails(step, bias=None, expected="AttributeError")
conclude(why, f"the step with an input that is None fails: {why}", "an input may be None")
