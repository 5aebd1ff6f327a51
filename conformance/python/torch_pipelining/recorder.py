"""What a rank's stages do, written down as it happens, under plumbline's result keys."""

import torch
from plumbline_case import Results


class Recorder:
    """Records between begin(step) and end(); what a stage does outside (PyTorch probing for shapes) is not recorded."""

    def __init__(self, kinds):
        self.results = Results()
        self._kinds = kinds
        self._step, self._microbatch = None, None

    def begin(self, step):
        self._step = step

    def end(self):
        self._step = None

    def put(self, kind, stage, microbatch, name, tensor):
        if kind in self._kinds and self._step is not None and tensor is not None:
            self.results.put(self._step, kind, stage, microbatch, name, tensor)

    def watch(self, stage, routed=None):
        """Has a PipelineStage tell its micro-batches, and (of a Routed one) what it hands back."""
        forward, backward = stage.forward_one_chunk, stage.backward_one_chunk
        back = routed.hands_back() if routed else {}

        def watched_forward(chunk, *args, **kwargs):
            self._microbatch = chunk
            output = forward(chunk, *args, **kwargs)
            self._microbatch = None
            if stage.is_last:
                for i, tensor in enumerate(output if isinstance(output, (tuple, list)) else (output,)):
                    self.put("output", None, chunk, str(i), tensor)
            return output

        def watched_backward(chunk, *args, **kwargs):
            self._microbatch = chunk
            backward(chunk, *args, **kwargs)
            self._microbatch = None
            # Kept until it is sent: what is here is what goes.
            for i, gradient in enumerate(stage.bwd_cache.get(chunk, ())):
                if i in back:
                    self.put("backward", stage.stage_index, chunk, back[i], self._sent(stage, i, gradient))

        stage.forward_one_chunk, stage.backward_one_chunk = watched_forward, watched_backward

    @staticmethod
    def _sent(stage, i, gradient):
        """PyTorch sends zeros for an input that nothing depends on, but 2.11, which refuses."""
        meta = getattr(stage, "_get_grad_send_meta", lambda _: None)(i)
        return gradient if gradient is not None or meta is None else torch.zeros(meta.shape, dtype=meta.dtype)

    def forward(self, stage, made):
        """The boundaries that a stage made."""
        if self._microbatch is not None:
            for name, tensor in made.items():
                self.put("forward", stage, self._microbatch, name, tensor)

    def share(self, stage, name):
        """A hook for a value that ends elsewhere: the part of its gradient that this stage gives."""
        microbatch = self._microbatch

        def hook(gradient):
            if microbatch is not None:
                self.put("backward", stage, microbatch, name, gradient)

        return hook

    def write(self, path):
        self.results.write(path)
