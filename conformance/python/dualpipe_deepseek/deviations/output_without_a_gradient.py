"""A first stage without a trainable parameter, as in fine-tuning of the last layers: what it returns requires no gradient,
but DualPipe's receive buffers do, so that a gradient comes back, and the stage's backward fails."""

import torch
from ranks import MICROBATCHES, conclude, fails, train


def step(trains, expected=None):
    def stages():
        return torch.nn.Linear(1, 1).requires_grad_(trains), torch.nn.Linear(1, 1)

    return train(stages, [torch.ones(MICROBATCHES, 1)], [(1, 1)], expected=expected)


step(trains=True)
why = fails(step, trains=False, expected="does not require grad")
conclude(why, f"the step with a frozen first stage fails: {why}", "the first stage may be frozen")
