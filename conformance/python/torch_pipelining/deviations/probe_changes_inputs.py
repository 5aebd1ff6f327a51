"""A first stage that changes its input in place (to normalise it, say), or a loss function its target: the inference of shapes
runs on the first micro-batch itself, not on a copy, so that this micro-batch is changed twice."""

import torch
from ranks import LOOPED, compare

M = 4


class First(torch.nn.Module):
    def __init__(self, in_place):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.in_place = in_place

    def forward(self, x):
        return (x.mul_(2) if self.in_place else x * 2) + self.weight


def program(pipe, bug):
    loss = lambda y, t: (y + (t.sub_(1) if bug else t - 1)).sum()  # noqa: E731
    pipe.build([First(bug), torch.nn.Identity()], M, loss=loss)
    losses = []
    keywords = {"losses": losses} if pipe.has_last else {}
    output = pipe.step(torch.ones(M, 1), target=torch.full((M, 1), 3.0), **keywords)
    return {"outputs": output.flatten().tolist(), "losses": [loss.item() for loss in losses]} if pipe.has_last else {}


compare("an input doubled and a target reduced in place", program, {"outputs": [2.0] * M, "losses": [4.0] * M},
        schedules=LOOPED)  # fmt: skip
