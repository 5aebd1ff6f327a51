"""A loss that is a view, such as one element of a longer tensor: after its backward DualPipe detaches it in place, which
PyTorch rejects for views."""

import torch
from ranks import MICROBATCHES, Failed, conclude, train


def step(view):
    def loss(y, *_):
        total = (1 * y).sum()  # the gradient of y alone would be one element, expanded
        return total.reshape(1)[0] if view else total

    return train(lambda: (torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)), [torch.ones(MICROBATCHES, 1)], [(1, 1)], loss)


assert step(view=False)[1]["bias"].item() == MICROBATCHES
try:
    step(view=True)
    why = None
except Failed as failed:
    why = str(failed)
    if "Can't detach views in-place" not in why:
        raise
conclude(why is not None, f"a loss that is a view: {why}", "a loss may be a view")
