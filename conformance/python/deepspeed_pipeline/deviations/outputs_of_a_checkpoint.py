"""A stage with several outputs has one backward for each. With activation_checkpoint_interval its recomputation is for one
only: what it saved is gone after the first."""

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
    def __init__(self):
        super().__init__()
        self.layer = line()

    def forward(self, given):
        return self.layer(given[0] + given[1])


def body(interval):
    config = {"pipeline": {"activation_checkpoint_interval": interval}}
    engine_of([First(), Second()], config=config).train_batch(data(torch.ones(1, 1)))


run(2, lambda _: body(0))  # the control
failure = fails(run, 2, lambda _: body(1), expected="NoneType")
conclude(failure, f"a checkpointed stage with two outputs: {failure}", "a checkpointed stage may have several outputs")
