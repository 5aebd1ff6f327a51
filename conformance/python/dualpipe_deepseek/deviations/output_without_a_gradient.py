"""A first stage without a trainable parameter, as in fine-tuning of the last layers: what it returns requires no gradient,
but DualPipe's receive buffers do, so that a gradient comes back, and the stage's backward fails."""

import torch
from ranks import MICROBATCHES, Failed, conclude, train


def step(trains):
    def stages():
        return torch.nn.Linear(1, 1).requires_grad_(trains), torch.nn.Linear(1, 1)

    return train(stages, [torch.ones(MICROBATCHES, 1)], [(1, 1)])


step(trains=True)
try:
    step(trains=False)
    why = None
except Failed as failed:
    why = str(failed)
    if "does not require grad" not in why:
        raise
conclude(why is not None, f"the step with a frozen first stage fails: {why}", "the first stage may be frozen")
