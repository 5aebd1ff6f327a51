"""A stage without parameters, as one of pooling or of activations: DualPipe's constructor looks for the first parameter."""

import torch
from ranks import MICROBATCHES, Failed, conclude, train


def step(last):
    return train(lambda: (torch.nn.Linear(1, 1), last()), [torch.ones(MICROBATCHES, 1)], [(1, 1)])


step(lambda: torch.nn.Linear(1, 1))
try:
    step(torch.nn.ReLU)
    why = None
except Failed as failed:
    why = str(failed)
    if "StopIteration" not in why:
        raise
conclude(why is not None, f"a stage without parameters is not constructed: {why}", "a stage needs no parameters")
