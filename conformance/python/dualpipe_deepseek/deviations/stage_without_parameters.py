"""A stage without parameters, as one of pooling or of activations: DualPipe's constructor looks for the first parameter."""

import torch
from ranks import MICROBATCHES, conclude, fails, train


def step(last, expected=None):
    return train(lambda: (torch.nn.Linear(1, 1), last()), [torch.ones(MICROBATCHES, 1)], [(1, 1)], expected=expected)


step(lambda: torch.nn.Linear(1, 1))
why = fails(step, torch.nn.ReLU, expected="StopIteration")
conclude(why, f"a stage without parameters is not constructed: {why}", "a stage needs no parameters")
