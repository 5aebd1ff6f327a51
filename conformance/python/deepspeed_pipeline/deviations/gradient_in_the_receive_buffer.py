"""A parameter that reaches the output of its stage through views and additions only: autograd makes its gradient a view of
the buffer that received the gradient, into which DeepSpeed receives the next micro-batch's."""

import torch
from ranks import conclude, data, engine_of, fail, run

M = 4


class First(torch.nn.Module):
    def __init__(self, view):
        super().__init__()
        self.offset, self.view = torch.nn.Parameter(torch.zeros(2)), view

    def forward(self, x):
        return x + (self.offset.view(2, 1) if self.view else self.offset[:, None] * 1)


class Second(torch.nn.Module):
    def forward(self, x):
        return x * x


def body(view):
    first = First(view)
    engine_of([first, Second()], M).train_batch(data(*[torch.full((2, 1), float(m)) for m in reversed(range(M))]))
    return [-x for x in first.offset.tolist()]  # the gradient: the learning rate is 1


(control, _), gradient = run(2, lambda _: body(False))[0], run(2, lambda _: body(True))[0]
if control <= 0:  # 1.5, the mean of 3, 2, 1, 0; less in a version that divides it at every stage
    fail(f"without a view the gradient is {control}; expected 1.5")
conclude(gradient != [control, control],
         f"a parameter that is added through a view has the gradient {gradient[0] + 0.0} in place of {control}",
         "the gradient of a parameter that is added through a view is its own")  # fmt: skip
