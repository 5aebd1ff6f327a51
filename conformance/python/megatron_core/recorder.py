"""Records the values of a rank's stages during execution, under plumbline's result keys."""

import collections

import torch
from plumbline_case.torch import Results


class Recorder:
    def __init__(self, kinds, first_microbatch):
        """`first_microbatch`: the number in results of the first one of this replica."""
        self.results = Results()
        self._kinds, self._first_microbatch = kinds, first_microbatch
        self._step, self._running = None, {}
        self._calls = collections.Counter()

    def begin(self, step):
        self._step = step
        self._running.clear()
        self._calls.clear()

    def put(self, kind, stage, microbatch, name, tensor):
        if kind in self._kinds:
            microbatch = None if microbatch is None else self._first_microbatch + microbatch
            self.results.put(self._step, kind, stage, microbatch, name, tensor)

    def backward_begins(self, stage, microbatch, root):
        """`root`: what the backward of the stage begins with."""

        def hook(_):
            self._running[stage] = microbatch

        if root.requires_grad:
            root.register_hook(hook)

    def accumulated(self, kind, stage, microbatch, name, leaf, shape, factor):
        """The gradient of a leaf once it is complete, times a factor: what Megatron-core sends back, and that of an input."""
        leaf.register_post_accumulate_grad_hook(
            lambda leaf: self.put(kind, stage, microbatch, name, leaf.grad.reshape(shape) * factor)
        )

    def doubling(self, stage, name):
        """A user's hook for a parameter: doubles its gradient and counts the call."""

        def hook(gradient):
            self._calls[stage, self._running.get(stage), name] += 1
            return gradient * 2

        return hook

    def counting(self, stage, microbatch, name):
        """A user's hook for a value of another stage: only counts the call."""

        def hook(_):
            self._calls[stage, microbatch, name] += 1

        return hook

    def hook_calls(self, stage, name, microbatches):
        for m in range(microbatches):
            self.put("hook-calls", stage, m, name, torch.tensor(self._calls[stage, m, name]))
