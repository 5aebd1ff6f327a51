"""A stage for PipelineStage, which only knows its two neighbours: values for other stages are forwarded."""

import contextlib

import torch
from plumbline_case.torch.local_loss import LocalLoss
from torch import nn
from torch.utils.checkpoint import checkpoint


class Routed(nn.Module):
    """Stage `index` of a case. It takes the tensors of takes(index), and returns those of gives(index).

    Every stage in between returns a value for a stage after the next one unchanged, as users of PipelineStage have to
    write it.
    """

    def __init__(self, case, index, recorder, weighed, reentrant=False):
        """weighed(loss): a loss of this stage as a result, and the gradient from which its backward begins. `reentrant`: the
        kind of torch.utils.checkpoint that recomputes the stage."""
        super().__init__()
        self.stage = case.stage(index)
        self._weighed, self._reentrant = weighed, reentrant
        self._index, self._recorder = index, recorder
        self._last = index == case.stages - 1
        self._has_hooks = case.json["boundary_hooks"]
        self._recompute, self._microbatches = case.json["recompute"], case.microbatches
        self._microbatch = None  # while PyTorch tells it
        self._inputs = [entry["name"] for entry in case.json["inputs"]]
        self.forms = []  # of the current step, by micro-batch
        self.form = case.program["programs"][0]  # of the current micro-batch: it decides which gradients exist
        self._boundaries = {b["name"]: b for b in self.form["boundaries"]}
        self._takes = self.takes()
        self._gives = [name for name, b in self._boundaries.items() if b["producer"] <= index < max(b["consumers"])]

    def begin(self, forms):
        """A step: the programs of its micro-batches."""
        self.forms, self.form = forms, forms[0]

    def select(self, microbatch):
        self.form = self.forms[microbatch]

    def takes(self):
        """Names of boundaries in the order of their arrival; None on the first stage."""
        if self._index == 0:
            return None
        return [name for name, b in self._boundaries.items() if b["producer"] < self._index <= max(b["consumers"])]

    def hands_back(self):
        """{position in takes(): boundary} for the boundaries that end here: this stage computes their whole gradient."""
        with_gradient = self._with_gradient()
        return {
            i: name
            for i, name in enumerate(self._takes or [])
            if max(self._boundaries[name]["consumers"]) == self._index and name in with_gradient
        }

    def hooked(self):
        """The boundaries on which this stage's forward registers hooks, in a case with `boundary_hooks`."""
        if self._takes is None:
            return []
        return [name for name in self.stage.input_names() if name in self._with_gradient()]

    def _with_gradient(self):
        return {b["name"] for b in self.form["boundaries"] if b["has_gradient"]}

    def forward(self, *args, **keywords):
        """Selects this stage's keywords: masks "STAGE/NAME", and inputs of the model that are passed by name."""
        passing = dict(zip(self._takes, args, strict=True)) if self._takes is not None else {}
        if self._takes is None:
            inputs = list(args or map(keywords.get, self._inputs))
        else:
            inputs = [self._own(name, passing) for name in self.stage.input_names()]
        prefix = f"{self._index}/"
        own_masks = {name.removeprefix(prefix): mask for name, mask in keywords.items() if name.startswith(prefix)}
        outputs = self._with_losses(self._made(inputs, own_masks))
        if self._last:
            return outputs
        made = dict(zip(self.stage.output_names(), outputs if isinstance(outputs, tuple) else (outputs,), strict=True))
        self._recorder.forward(self._index, made)
        given = tuple(made.get(name, passing.get(name)) for name in self._gives)
        return given[0] if len(given) == 1 else given

    def _made(self, inputs, masks):
        """What the stage makes; recomputed in its backward if the case asks for it, as users of PyTorch do that."""
        kept = self._recompute == "never" or self._recompute == "except-last" and self._microbatch == self._microbatches - 1
        if kept or not self.training:
            return self.stage(*inputs, **masks)
        if not self._reentrant:
            return checkpoint(self.stage, *inputs, use_reentrant=False, **masks)
        # It takes no keywords, and makes no gradient unless an argument requires one: users give it one of no use.
        unused = torch.zeros((), requires_grad=True)
        return checkpoint(lambda _, *given: self.stage(*given, **masks), unused, *inputs, use_reentrant=True)

    @contextlib.contextmanager
    def told(self, info):
        """A forward context of PyTorch: it tells the stage which micro-batch it runs."""
        self._microbatch = info.microbatch_index
        yield
        self._microbatch = None

    def _with_losses(self, outputs):
        """Adds this stage's own losses to the backward of the first output that has one."""
        if not self.stage.local_losses:
            return outputs
        flat = list(outputs) if isinstance(outputs, tuple) else [outputs]
        names = self.stage.output_names()
        carrier = next((i for i, name in enumerate(names) if self._last or name in self._with_gradient()), None)
        for name, made in self.stage.local_losses.items():
            loss, weight = self._weighed(made)
            self._recorder.local_loss(name, loss)
            if loss.requires_grad:
                flat[carrier] = LocalLoss.apply(flat[carrier], loss, weight)
        return tuple(flat) if isinstance(outputs, tuple) else flat[0]

    def _own(self, name, passing):
        """The tensor that this stage uses; for a forwarded value, a view whose gradient is this stage's share."""
        value = passing[name]
        if self._has_hooks and value.requires_grad:
            value.register_hook(self._recorder.counting(self._index, name))
        if name not in self._gives or not value.requires_grad:
            return value
        own = value.view_as(value)
        if name in self._with_gradient():
            own.register_hook(self._recorder.share(self._index, name))
        return own
