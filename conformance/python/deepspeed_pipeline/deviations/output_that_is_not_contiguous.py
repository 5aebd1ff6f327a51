"""An output that is not contiguous, such as a transposed one, is sent unchanged, which gloo (and NCCL) rejects."""

import torch
from ranks import conclude, data, engine_of, fails, line, run


class Turned(torch.nn.Module):
    def __init__(self, turned):
        super().__init__()
        self.layer, self.turned = line(), turned

    def forward(self, x):
        y = torch.cat([self.layer(x), self.layer(x)], 1).t()
        return y if self.turned else y.contiguous()


class Last(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = line()

    def forward(self, y):
        return self.layer(y.t()[:, :1])


def body(turned):
    engine_of([Turned(turned), Last()]).train_batch(data(torch.ones(3, 1)))


run(2, lambda _: body(False))  # the control
failure = fails(run, 2, lambda _: body(True), expected="contiguous")
conclude(failure, f"an output that is not contiguous: {failure}", "an output need not be contiguous")
