"""An input that is None: step() declares its inputs as optional and divides None among the micro-batches, but the first
stage's backward asks every input for its gradient."""

import torch
from ranks import MICROBATCHES, Failed, conclude, train


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)

    def forward(self, x, bias):
        return self.layer(x) if bias is None else self.layer(x) + bias


def step(bias):
    return train(lambda: (First(), torch.nn.Linear(1, 1)), [torch.ones(MICROBATCHES, 1), bias], [(1, 1)])


step(bias=torch.ones(MICROBATCHES, 1))
try:
    step(bias=None)
    why = None
except Failed as failed:
    why = str(failed)
    if "AttributeError" not in why:
        raise
conclude(why is not None, f"the step with an input that is None fails: {why}", "an input may be None")
