"""A stage sends complex numbers conjugated, which torch does by a mark on a view: a send takes no view with that mark."""

import torch
from ranks import conclude, data, engine_of, fails, line, run


class First(torch.nn.Module):
    def __init__(self, is_marked):
        super().__init__()
        self.layer, self.is_marked = line(), is_marked

    def forward(self, x):
        y = self.layer(x)
        z = torch.complex(y, y * 0).conj()
        return y, z if self.is_marked else z.resolve_conj()


class Second(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = line()

    def forward(self, given):
        return self.layer(given[0] + given[1].real)


def body(is_marked):
    engine_of([First(is_marked), Second()]).train_batch(data(torch.ones(2, 1)))


run(2, lambda _: body(False))  # the control
failure = fails(run, 2, lambda _: body(True), expected="unresolved conjugated tensors")
conclude(failure, f"a conjugated value between stages: {failure}", "conjugated values are sent")
