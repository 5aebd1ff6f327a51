"""A stage sends complex numbers beside real ones: DeepSpeed asks of each value whether it is of real numbers, and takes the
complex ones for values without a gradient. The stage learns from the others only, and nothing is said."""

import torch
from ranks import conclude, data, engine_of, fail, line, run


class First(torch.nn.Module):
    def __init__(self, is_complex):
        super().__init__()
        self.layer, self.is_complex = line(), is_complex

    def forward(self, x):
        y = self.layer(x)
        return y, torch.complex(y, y * 0) if self.is_complex else y * 1


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = line()

    def forward(self, given):
        y, z = given
        return self.layer(y + (z.real if z.is_complex() else z))


def body(rank, is_complex):
    layers = [First(is_complex), Second()]
    engine_of(layers).train_batch(data(torch.ones(2, 1)))
    return 1 - layers[0].layer.weight.item() if rank == 0 else None  # the gradient: the learning rate is 1


if (control := run(2, lambda rank: body(rank, False))[0]) <= 0:
    fail(f"without complex numbers the gradient is {control}")
gradient = run(2, lambda rank: body(rank, True))[0]
conclude(gradient != control, f"a gradient of {control} becomes {gradient:.4g} where one of two values is complex", "complex values have a gradient")
