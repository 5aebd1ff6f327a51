"""Layers that leave their weight gradients to the `dw_builder` of a stage whose shapes are inferred: the inference runs their
backward on memory that was never written, and does not ask for the work, which the first micro-batch does instead of it."""

import torch
from ranks import WHOLE, compare

M = 4


class Deferred(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight, self.works = torch.nn.Parameter(torch.ones(2, 2)), []

    def forward(self, x):
        return ForInput.apply(self, x, self.weight)

    def take(self):
        """The work of all backwards so far."""
        works, self.works = self.works, []
        return lambda: [self.add(*work) for work in works]

    def add(self, gradient, x):
        own = gradient.t() @ x
        self.weight.grad = own if self.weight.grad is None else self.weight.grad + own


class ForInput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, layer, x, weight):
        ctx.layer = layer
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        ctx.layer.works.append((gradient.detach(), x.detach()))
        return None, gradient @ weight, None


def program(pipe, bug):
    modules = [torch.nn.Linear(2, 2), Deferred()]
    torch.nn.init.zeros_(modules[0].weight), torch.nn.init.ones_(modules[0].bias)
    like = None if bug else [torch.ones(1, 2, requires_grad=s > 0) for s in range(3)]
    builder, asked_with = modules[1].take, []

    def take():
        asked_with.append(len(modules[1].works))
        return builder()

    pipe.build(modules, M, loss=lambda y, t: y.sum(), scale_grads=False, shapes=like, work={1: take})
    pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    return {"works of each micro-batch": asked_with} if pipe.has_last else {}


compare("weight gradients of a dw_builder", program, {"works of each micro-batch": [1] * M}, schedules=WHOLE)
