"""A stage that returns complex numbers, with shapes that PyTorch infers: it takes them for numbers without a gradient, and the
step fails. The control gives the shapes."""

import torch
from ranks import LOOPED, compare

M = 4
NUMBERS = (torch.zeros(1, 2, requires_grad=True),)
SHAPES = [NUMBERS, (torch.zeros(1, 1, dtype=torch.complex64, requires_grad=True),), NUMBERS]


class Complex(torch.nn.Module):
    """Numbers to half as many complex ones."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, x):
        return torch.view_as_complex(self.layer(x).unflatten(1, (1, 2)))


class Real(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, z):
        return self.layer(torch.view_as_real(z).flatten(1))


def program(pipe, bug):
    pipe.build([Complex(), Real()], M, loss=lambda y, t: y.sum(), shapes=None if bug else SHAPES)
    pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    return {"learned": all(p.grad is not None for p in pipe.modules[0].parameters())} if 0 in pipe.own else {}


compare("complex numbers between stages whose shapes are inferred", program, {"learned": True}, schedules=LOOPED,
        error="GradientEdge root requires a gradient|grad metadata|grad can be implicitly created")  # fmt: skip
