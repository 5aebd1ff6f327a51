"""A stage as a layer of DeepSpeed's PipelineModule, which sends what a stage returns to the next one."""

import torch
from deepspeed.pipe import TiedLayerSpec
from plumbline_case.torch.local_loss import LocalLoss
from torch import nn


class Shared(nn.Module):
    """A parameter that several stages have: the module of a TiedLayerSpec."""

    def __init__(self, value, requires_grad):
        super().__init__()
        self.weight = nn.Parameter(value.clone(), requires_grad=requires_grad)


class Loss(nn.Module):
    """A loss function with parameters, those of the module `own`."""

    def __init__(self, own, function):
        super().__init__()
        self.own, self.function = own, function

    def forward(self, outputs, labels):
        return self.function(outputs, labels)


class Layer(nn.Module):
    """Stage `index` of a case. It takes and returns a tensor, or a tuple of several, as DeepSpeed requires.

    Every stage in between returns a value for a stage after the next one unchanged, as users of a PipelineModule have to
    write it.
    """

    def __init__(self, case, index, recorder, weighed):
        """weighed(loss): a loss of this stage as a result, and the gradient from which its backward begins."""
        super().__init__()
        self.stage = case.stage(index)
        self._case, self._index, self._recorder, self._weighed = case, index, recorder, weighed
        self._last = index == case.stages - 1
        self.shares = {}  # of the running micro-batches: (micro-batch, name of a value that is handed on) -> this stage's view

    def share(self, name):
        """From here on this stage takes parameter `name` from use()."""
        owner, leaf = self._place(name)
        del owner._parameters[leaf]

    def use(self, name, parameter):
        owner, leaf = self._place(name)
        owner.__dict__[leaf] = parameter  # not registered again: it belongs to the tied layer

    def _place(self, name):
        path, _, leaf = name.rpartition(".")
        return self.stage.get_submodule(path), leaf

    def _form(self):
        return self._case.step_program(self._recorder.step, self._recorder.microbatch)

    def takes(self):
        """Names of boundaries in the order of their arrival."""
        return passing(self._form(), self._index - 1)

    def arriving(self):
        """The boundaries that this stage itself takes and for which it owes a gradient."""
        own = set(self.stage.input_names())
        return [b for b in self._form()["boundaries"] if b["has_gradient"] and b["name"] in own and b["producer"] < self._index]

    def forward(self, given):
        given = given if isinstance(given, tuple) else (given,)
        step, microbatch = self._recorder.step, self._recorder.microbatch
        if self._index == 0:
            arrived = {}
            there = iter(given)
            inputs = [None if x is None else next(there) for x in self._case.batch_inputs(step)]
        else:
            arrived = dict(zip(self.takes(), given, strict=True))
            inputs = [self._own(name, arrived) for name in self.stage.input_names()]
        masks = self._case.masks(step, self._index, microbatch)
        outputs = self._with_losses(self.stage(*inputs, **masks))
        flat = self._case.flat_outputs(outputs)
        made = {name: x for name, x in zip(self.stage.output_names(), flat, strict=True) if x is not None}
        for name, tensor in made.items():
            place = ("output", None) if self._last else ("forward", self._index)
            self._recorder.put(*place, microbatch, name, tensor)
        if self._last:
            return outputs
        gives = tuple(made[name] if name in made else arrived[name] for name in passing(self._form(), self._index))
        return gives[0] if len(gives) == 1 else gives

    def _own(self, name, arrived):
        """The tensor that this stage uses; for a value that is handed on, a view whose gradient is this stage's share."""
        value = arrived.get(name)
        if value is None or not value.requires_grad:
            return value
        owed = name in {b["name"] for b in self.arriving()}
        if owed and self._case.json["boundary_hooks"]:
            value.register_hook(self._recorder.counting(self._index, name))
        if not owed or name not in passing(self._form(), self._index):
            return value
        own = value.view_as(value)
        own.retain_grad()
        self.shares[self._recorder.microbatch, name] = own
        return own

    def _with_losses(self, outputs):
        """Adds this stage's own losses to the backward of the first output that has one."""
        if not self.stage.local_losses:
            return outputs
        flat = list(outputs) if isinstance(outputs, tuple) else [outputs]
        with_gradient = {b["name"] for b in self._form()["boundaries"] if b["has_gradient"]}
        carrier = next(
            (i for i, name in enumerate(self.stage.output_names()) if self._last or name in with_gradient), None
        )
        for name, made in self.stage.local_losses.items():
            loss, weight = self._weighed(made)
            self._recorder.put("loss", None, self._recorder.microbatch, name, loss)
            if loss.requires_grad:
                flat[carrier] = LocalLoss.apply(flat[carrier], loss, weight)
        return tuple(flat) if isinstance(outputs, tuple) else flat[0]


def passing(form, index):
    """Names of the boundaries that cross from stage `index` to the next one, in the order of the program."""
    return [
        b["name"]
        for b in form["boundaries"]
        if b["producer"] <= index < max(b["consumers"]) and _made(form["stages"][b["producer"]], b["name"])
    ]


def _made(stage, name):
    return any(e["to"] == "boundary" and e["name"] == name and e["value"] is not None for e in stage["outputs"])


def layers_of(case, own, layer):
    """The layers of a PipelineModule: for each stage a tied layer for every shared parameter, and the stage itself.

    Stages have equally many layers, so that DeepSpeed's uniform partition is that of the case. A tied layer passes its
    input on, and gives its parameter to the stage after it. Only the rank's own stage, `layer`, is built.
    """
    shared = [p for p in case.program["parameters"] if len(p["stages"]) > 1]
    for entry in shared:
        if own in entry["stages"]:
            layer.share(entry["name"])
    layers = []
    for stage in range(case.stages):
        for number, entry in enumerate(shared):
            layers.append(_tied(case, number, entry, layer) if stage in entry["stages"] else nn.Identity())
        layers.append(layer if stage == own else nn.Identity())
    return layers


def _tied(case, number, entry, layer):
    def give(module, x):
        layer.use(entry["name"], module.weight)
        return x

    value = case.tensors[f"parameter/{entry['name']}"]
    return TiedLayerSpec(f"shared{number}", Shared, value, entry["requires_grad"], forward_fn=give, tied_weight_attr="weight")
