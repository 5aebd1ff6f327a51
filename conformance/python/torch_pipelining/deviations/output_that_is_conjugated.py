"""A stage that returns a complex tensor conjugated, with shapes that the user gives: torch conjugates by a mark on a view, and
a send takes no view with that mark."""

import torch
from ranks import compare

M = 4
NUMBERS = (torch.zeros(1, 2, requires_grad=True),)
# The inference of shapes gives complex numbers no gradient: complex_between_inferred_stages.py.
SHAPES = [NUMBERS, (torch.zeros(1, 1, dtype=torch.complex64, requires_grad=True),), NUMBERS]


class Complex(torch.nn.Module):
    """Numbers to half as many complex ones."""

    def __init__(self, conjugated):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)
        self.conjugated = conjugated

    def forward(self, x):
        z = torch.view_as_complex(self.layer(x).unflatten(1, (1, 2)))
        return z.conj() if self.conjugated else z.conj().resolve_conj()


class Real(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 2)

    def forward(self, z):
        return self.layer(torch.view_as_real(z.resolve_conj()).flatten(1))


def program(pipe, bug):
    pipe.build([Complex(bug), Real()], M, loss=lambda y, t: y.sum(), shapes=SHAPES)
    pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    return {"learned": all(p.grad is not None for p in pipe.modules[0].parameters())} if 0 in pipe.own else {}


compare("a stage that returns a conjugated tensor", program, {"learned": True}, error="RuntimeError: view_as_real doesn't work on")
