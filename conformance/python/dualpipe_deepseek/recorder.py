"""Records the values of a rank's stages during execution, under plumbline's result keys."""

import collections

import torch
from plumbline_case.torch import Results


class Recorder:
    def __init__(self, kinds):
        self.results = Results()
        self._kinds, self._step = kinds, None
        self._backward = {}  # stage: the micro-batch of its current backward
        self._calls = collections.Counter()

    def begin(self, step):
        self._step = step
        self._calls.clear()

    def put(self, kind, stage, microbatch, name, tensor):
        if kind in self._kinds and tensor is not None:
            self.results.put(self._step, kind, stage, microbatch, name, tensor)

    def backward_begins(self, stage, microbatch):
        self._backward[stage] = microbatch

    def call(self, stage, microbatch, name):
        """Counts a call of a user's hook."""
        self._calls[stage, microbatch, name] += 1

    def doubling(self, stage, name):
        """A user's hook for a parameter: doubles its gradient and counts the call."""

        def hook(gradient):
            self.call(stage, self._backward[stage], name)
            return gradient * 2

        return hook

    def put_calls(self, stage, name, microbatches):
        for m in microbatches:
            self.put("hook-calls", stage, m, name, torch.tensor(self._calls[stage, m, name]))
