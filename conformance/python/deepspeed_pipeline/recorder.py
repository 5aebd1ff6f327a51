"""Records the values of a rank's stage during execution, under plumbline's result keys."""

import collections

import torch
from plumbline_case.torch import Results


class Recorder:
    """Knows the step and the micro-batch that the engine is at: it watches the instructions that the engine executes."""

    def __init__(self, kinds, first_microbatch):
        """`first_microbatch`: the number in results of the first one of this replica."""
        self.results = Results()
        self.step = self.microbatch = None
        self._kinds, self._first_microbatch = kinds, first_microbatch
        self._executed = collections.Counter()
        self._calls = collections.Counter()

    def begin(self, step):
        self.step = step
        self._executed.clear()
        self._calls.clear()

    def put(self, kind, stage, microbatch, name, tensor):
        if kind in self._kinds:
            microbatch = None if microbatch is None else self._first_microbatch + microbatch
            self.results.put(self.step, kind, stage, microbatch, name, tensor)

    def watch(self, engine, instruction, before=None, after=None):
        """Calls before() and after(buffer), if given, around every such instruction; micro-batches are in their order."""
        execute = engine._INSTRUCTION_MAP[instruction]

        def watched(engine, *args, **keywords):
            self.microbatch = self._executed[instruction]
            self._executed[instruction] += 1
            if before:
                before()
            execute(engine, *args, **keywords)
            if after:
                after(*keywords.values())
            self.microbatch = None

        engine._INSTRUCTION_MAP = {**engine._INSTRUCTION_MAP, instruction: watched}

    def doubling(self, stage, name):
        """A user's hook for a parameter: doubles its gradient and counts the call."""

        def hook(gradient):
            self._calls[stage, self.microbatch, name] += 1
            return gradient * 2

        return hook

    def counting(self, stage, name):
        """A user's hook for a value of another stage: only counts the call."""

        def hook(_):
            self._calls[stage, self.microbatch, name] += 1

        return hook

    def hook_calls(self, stage, name, microbatches):
        for m in range(microbatches):
            self.put("hook-calls", stage, m, name, torch.tensor(self._calls[stage, m, name]))
