"""A stage in the middle receives integers and real numbers, as many of each, and sends on the real numbers only: the buffer
for their gradient is the one for the integers, whose type DeepSpeed does not look at. Gradients become integers."""

import torch
from ranks import conclude, data, engine_of, fail, line, run


class First(torch.nn.Module):
    def __init__(self, numbers):
        super().__init__()
        self.layer, self.numbers = line(), numbers

    def forward(self, x):
        return torch.ones(self.numbers, 1, dtype=torch.int32), self.layer(x)


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = line()

    def forward(self, given):
        numbers, y = given
        return self.layer(y) * numbers


def body(rank, numbers):
    layers = [First(numbers), Second(), line()]
    engine_of(layers).train_batch(data(torch.ones(2, 1)))
    return 1 - layers[1].layer.weight.item() if rank == 1 else None  # the gradient: the learning rate is 1


if (control := run(3, lambda rank: body(rank, 1))[1]) <= 0:  # a buffer for one integer is too short for two gradients
    fail(f"with fewer integers the gradient is {control}; expected 1")
gradient = run(3, lambda rank: body(rank, 2))[1]
conclude(gradient != control, f"a gradient of {control} becomes {gradient:.4g} after two integers", "gradients keep their type")
