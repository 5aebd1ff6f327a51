"""Layers that compute the gradients of their parameters apart from autograd: the user's modules of a case with
`weight_closures`. An engine calls their work once after the backward of each micro-batch (PyTorch's dw_builder)."""

import torch
import torch.nn.functional as F
from torch import nn


class DeferredLinear(torch.autograd.Function):
    """linear, whose backward computes the gradient of the input, and leaves those of weight and bias to `queue`."""

    @staticmethod
    def forward(ctx, queue, input, weight, bias):
        ctx.queue = queue
        ctx.save_for_backward(input, weight, bias)
        return F.linear(input, weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        input, weight, bias = ctx.saved_tensors
        ctx.queue.append((input.detach(), weight, bias, gradient.detach()))
        return None, gradient.matmul(weight) if ctx.needs_input_grad[1] else None, None, None


class WeightClosures:
    """The work of one stage's modules that no take() has returned yet."""

    def __init__(self):
        self._queue = []

    def operators(self):
        """What replaces operators of the opset: linear where its weight is a parameter."""
        return {"aten::linear": self._linear}

    def take(self):
        """The work of the backwards since the last take(), as a function that adds to the parameters' .grad."""
        work = self._queue[:]
        self._queue.clear()

        def run():
            with torch.no_grad():
                for item in work:
                    _add_gradients(*item)

        return run

    def _linear(self, input, weight, bias):
        if isinstance(weight, nn.Parameter):
            return DeferredLinear.apply(self._queue, input, weight, bias)
        return F.linear(input, weight, bias)


def _add_gradients(input, weight, bias, gradient):
    rows = gradient.flatten(0, -2)
    if weight.requires_grad:
        _add(weight, rows.t().mm(input.flatten(0, -2)))
    if bias is not None and bias.requires_grad:
        _add(bias, rows.sum(0))


def _add(parameter, gradient):
    parameter.grad = gradient if parameter.grad is None else parameter.grad + gradient
