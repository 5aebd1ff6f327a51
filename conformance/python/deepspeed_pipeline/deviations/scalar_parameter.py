"""A parameter without dimensions, such as a temperature: the engine cannot be made, for it broadcasts each parameter as a view
of bytes, which such a tensor has not."""

import torch
from ranks import conclude, data, engine_of, fails, run


class Scale(torch.nn.Module):
    def __init__(self, *shape):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(shape))

    def forward(self, x):
        return self.scale * x


def body(*shape):
    engine_of([Scale(*shape), Scale(*shape)]).train_batch(data(torch.ones(1, 1)))


run(2, lambda _: body(1))  # the control
failure = fails(run, 2, lambda _: body(), expected="dim() cannot be 0")
conclude(failure, f"a parameter without dimensions: {failure}", "a parameter may have no dimensions")
