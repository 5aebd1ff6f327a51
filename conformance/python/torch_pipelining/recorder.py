"""Records the values of a rank's stages during execution, under plumbline's result keys."""

import collections

import torch
from plumbline_case import place
from plumbline_case.torch import Results


class Recorder:
    """Records between begin(step) and end(); other calls of a stage (PyTorch probing for shapes) are not recorded."""

    def __init__(self, kinds, case, loss_factor=1):
        """`case` is a replica's part; `loss_factor` is what multiplies each loss beyond what the case asks for."""
        self.results = Results()
        self._kinds, self._case, self._loss_factor = kinds, case, loss_factor
        self._step, self._stage, self._microbatch = None, None, None
        self.outputs_of_stages = False  # whether outputs are recorded as the last stage makes them, not as step() returns them
        self._calls = collections.Counter()
        self._found = {}  # by stage, micro-batch and parameter: .grad in the last call of a hook after an accumulation

    def begin(self, step):
        self._step = step
        self._calls.clear()
        self._found.clear()

    def end(self):
        self._step = None

    def put(self, kind, stage, microbatch, name, tensor):
        if kind in self._kinds and self._step is not None and tensor is not None:
            if kind in ("backward", "input-grad") and self._loss_factor != 1:
                tensor = tensor / self._loss_factor
            microbatch = None if microbatch is None else self._case.first_microbatch + microbatch
            self.results.put(self._step, kind, stage, microbatch, name, tensor)

    def watch(self, stage, routed=None):
        """Records the micro-batches of a PipelineStage, and (of a Routed one) the gradients that it sends back."""
        forward, backward, weight = stage.forward_one_chunk, stage.backward_one_chunk, stage.backward_weight_one_chunk

        def during(action, chunk, call, *args, **kwargs):
            self._stage, self._microbatch = stage.stage_index, chunk
            if routed and routed.forms:
                routed.select(chunk)
            with place.at(stage.stage_index, chunk, action):
                result = call(chunk, *args, **kwargs)
            self._stage, self._microbatch = None, None
            return result

        def watched_forward(chunk, *args, **kwargs):
            output = during("F", chunk, forward, *args, **kwargs)
            if stage.is_last and self.outputs_of_stages:
                # By position: a traced pipe that lost an output delivers the others, and lacks the last ones.
                for name, tensor in zip(self._case.output_names(), self._case.flat_outputs(output), strict=False):
                    self.put("output", None, chunk, name, tensor)
            return output

        def watched_backward(chunk, *args, **kwargs):
            action = "B" if kwargs.get("full_backward", True) else "I"
            during(action, chunk, backward, *args, **kwargs)
            # PyTorch keeps this gradient until the send: it is the sent value.
            back = routed.hands_back() if routed else {}
            for i, gradient in enumerate(stage.bwd_cache.get(chunk, ())):
                if i in back:
                    self.put("backward", stage.stage_index, chunk, back[i], self._sent(stage, i, gradient))

        def watched_weight(chunk, *args, **kwargs):
            during("W", chunk, weight, *args, **kwargs)

        stage.forward_one_chunk, stage.backward_one_chunk = watched_forward, watched_backward
        stage.backward_weight_one_chunk = watched_weight

    @staticmethod
    def _sent(stage, i, gradient):
        """PyTorch sends zeros for an input on which no output depends, except 2.11, which rejects it."""
        meta = getattr(stage, "_get_grad_send_meta", lambda _: None)(i)
        return gradient if gradient is not None or meta is None else torch.zeros(meta.shape, dtype=meta.dtype)

    def forward(self, stage, made):
        """The boundaries that a stage produced."""
        if self._microbatch is not None:
            for name, tensor in made.items():
                self.put("forward", stage, self._microbatch, name, tensor)

    def local_loss(self, name, loss):
        """A loss that stays in its stage."""
        if self._microbatch is not None:
            self.put("loss", None, self._microbatch, name, loss)

    def share(self, stage, name):
        """A hook for a value that another stage consumes: this stage's part of its gradient."""
        microbatch = self._microbatch

        def hook(gradient):
            if microbatch is not None:
                self.put("backward", stage, microbatch, name, gradient)

        return hook

    def doubling(self, name):
        """A user's hook for a parameter: doubles its gradient and counts the call for the stage that runs."""

        def hook(gradient):
            self._calls[self._stage, self._microbatch, name] += 1
            return gradient * 2

        return hook

    def after_accumulation(self, name):
        """A user's hook on a parameter that is called after each accumulation: counts the call, and keeps .grad."""

        def hook(parameter):
            self._calls[self._stage, self._microbatch, name] += 1
            if self._microbatch is not None:
                self._found[self._stage, self._microbatch, name] = parameter.grad.clone()

        return hook

    def counting(self, stage, name):
        """A user's hook for a value of another stage: only counts the call."""

        def hook(_):
            self._calls[stage, self._microbatch, name] += 1

        return hook

    def called(self):
        """[(stage, name)] of the hooks that were called in this step."""
        return sorted({(stage, name) for stage, microbatch, name in self._calls if microbatch is not None})

    def hook_calls(self, stage, name, microbatches):
        for m in range(microbatches):
            self.put("hook-calls", stage, m, name, torch.tensor(self._calls[stage, m, name]))
            self.put("accumulated", stage, m, name, self._found.get((stage, m, name)))
