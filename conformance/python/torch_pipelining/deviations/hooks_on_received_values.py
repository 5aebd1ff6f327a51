"""A hook that a stage's forward registers on its input: the next step reuses the input's receive buffer, with the hooks of
earlier steps. (pytorch issue 185331)"""

import torch
from ranks import WHOLE, compare

M = 4


class Hooked(torch.nn.Linear):
    calls = 0

    def count(self, gradient):
        self.calls += 1

    def forward(self, x):
        if x.requires_grad:
            x.register_hook(self.count)
        return super().forward(x)


def program(pipe, bug):
    hooked = Hooked(1, 1)
    like = [torch.ones(1, 1, requires_grad=s > 0) for s in range(3)]  # without them a probe calls the hook too
    pipe.build([torch.nn.Linear(1, 1), hooked], M, loss=lambda y, t: y.sum(), shapes=like)
    x = torch.ones(M, 1)
    calls = []
    for _ in range(3 if bug else 1):
        hooked.calls = 0
        pipe.step(x, target=x)
        calls.append(hooked.calls)
    return {"calls": calls} if pipe.has_last else {}


compare("calls of hooks on the input of a stage, by step", program, lambda bug: {"calls": [M] * (3 if bug else 1)},
        schedules=(*WHOLE, "InterleavedZeroBubble"))  # fmt: skip
