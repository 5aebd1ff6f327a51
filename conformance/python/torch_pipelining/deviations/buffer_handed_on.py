"""A stage that hands on a buffer which its next forward changes in place (a count, running statistics): the message is not
copied, and a receiver that is slower gets the value of a later micro-batch."""

import time

import torch
from ranks import LOOPED, compare

M = 4


class Counts(torch.nn.Module):
    def __init__(self, copied):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
        self.register_buffer("count", torch.zeros(1, 1))
        self.copied = copied

    def forward(self, x):
        self.count += 1
        return x * self.weight, self.count.clone() if self.copied else self.count


class Slow(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x, count):
        time.sleep(0.1)
        return x * self.weight * count


def program(pipe, bug):
    received = torch.ones(1, 1, requires_grad=True)
    given = [torch.ones(1, 1), (received, torch.ones(1, 1)), received]
    pipe.build([Counts(not bug), Slow()], M, loss=lambda y, t: y.sum(), shapes=given)
    output = pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return {"counts": output.flatten().tolist()} if pipe.has_last else {}


compare("counts that the second stage receives", program, {"counts": [1, 2, 3, 4]}, schedules=LOOPED)
