"""A loss function that raises in the last micro-batch of an eval(), which the user catches: the losses of the others are kept,
and the next step's backward begins at them."""

import torch
from ranks import LOOPED, compare

M = 4


class Loss:
    def __init__(self):
        self.left = None  # calls until it raises

    def __call__(self, output, target):
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                raise ValueError("not a number")
        return (output * target).sum()


def program(pipe, bug):
    loss, x, target = Loss(), torch.ones(M, 1), torch.arange(1.0, M + 1)[:, None]
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(2)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    pipe.build(layers, M, loss=loss, scale_grads=False)
    pipe.step(x, target=target)
    loss.left = M if bug else None
    try:
        pipe.eval(x, target=target)
    except ValueError:
        pass
    loss.left = None
    for layer in layers:
        layer.weight.grad = None
    pipe.step(x, target=target)
    return pipe.gradients()


compare("gradients of a step after an eval() whose loss function raised", program, {"stage 0": [10], "stage 1": [10]},
        schedules=LOOPED, error="has gradients None|non-empty inputs|does not require grad")  # fmt: skip
