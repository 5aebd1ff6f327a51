"""A loss that is a view, such as one element of a longer tensor: after its backward DualPipe detaches it in place, which
PyTorch rejects for views."""

import torch
from ranks import MICROBATCHES, conclude, control, fails, train


def step(view, expected=None):
    def loss(y, *_):
        total = (1 * y).sum()  # the gradient of y alone would be one element, expanded
        return total.reshape(1)[0] if view else total

    stages = lambda: (torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))
    return train(stages, [torch.ones(MICROBATCHES, 1)], [(1, 1)], loss, expected)


control(step(view=False)[1]["bias"].item() == MICROBATCHES)
why = fails(step, view=True, expected="Can't detach views in-place")
conclude(why, f"a loss that is a view: {why}", "a loss may be a view")
