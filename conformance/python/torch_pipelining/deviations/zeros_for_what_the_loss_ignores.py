"""A value that the last stage receives and returns, but that the loss ignores: without a pipeline the parameters before
it have no gradient (None), in a pipeline one of zeros, which an optimizer with momentum or weight decay applies."""

import torch
from ranks import compare

M = 2


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.ignored = (torch.nn.Linear(1, 1, bias=False) for _ in range(2))

    def forward(self, x):
        return self.layer(x), self.ignored(x)


class Second(torch.nn.Module):
    def forward(self, x, ignored):
        return x * 2, ignored


def program(pipe, bug):
    pipe.build([First(), Second()], M, loss=lambda y, t: y[0].sum() + (0 if bug else y[1].sum()), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return {name: gradient for name, gradient in pipe.gradients().items() if name == "stage 0"}


compare("gradients of what the loss uses and of what it ignores", program,
        lambda bug: {"stage 0": [2 * M, None if bug else M]},
        error="Error: (One of the differentiated Tensors|.*has gradients None|expected tensor values)")  # fmt: skip
