"""A tuple between stages with a tensor of real numbers that requires no gradient, such as a mask or a table of positions:
DeepSpeed calls backward() for each of them. (DeepSpeed issue 7270)"""

import torch
from ranks import conclude, data, engine_of, fails, line, run


class First(torch.nn.Module):
    def __init__(self, requires_grad):
        super().__init__()
        self.layer, self.factor = line(), torch.nn.Parameter(torch.ones(1), requires_grad=requires_grad)

    def forward(self, x):
        return self.layer(x), self.factor * 2


class Second(torch.nn.Module):
    def forward(self, given):
        return given[0] * given[1]


def body(requires_grad):
    engine_of([First(requires_grad), Second()]).train_batch(data(torch.ones(1, 1)))


run(2, lambda _: body(True))  # the control
failure = fails(run, 2, lambda _: body(False), expected="does not require grad")
conclude(failure, f"a value between stages that requires no gradient: {failure}", "values between stages need no gradient")
