"""A stage receives a tensor of real numbers on which the loss does not depend: DeepSpeed makes it require a gradient, and
refuses to send that there is none. (DeepSpeed issue 3302)"""

import torch
from ranks import conclude, data, engine_of, fails, line, run


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = line()

    def forward(self, x):
        y = self.layer(x)
        return y, y * 2


class Second(torch.nn.Module):
    def __init__(self, ignores):
        super().__init__()
        self.ignores = ignores

    def forward(self, given):
        return given[0] if self.ignores else given[0] + given[1]


def body(ignores):
    engine_of([First(), Second(ignores)]).train_batch(data(torch.ones(1, 1)))


run(2, lambda _: body(False))  # the control
failure = fails(run, 2, lambda _: body(True), expected="_exec_send_grads")
conclude(failure, f"a value between stages that the loss ignores: {failure}", "the loss may ignore values between stages")
