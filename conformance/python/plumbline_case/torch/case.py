"""A case with tensors of torch, and its stages as nn.Modules."""

import functools
import operator
import os

import torch
import torch.nn.functional as F

from .. import case
from ..schema import FormatError
from .modules import StageModule, WholeModel
from .ops import OPS, OPSET
from .tensors import read_tensors


class Case(case.Case):
    """plumbline_case.Case with tensors of torch in place of arrays."""

    read_tensors = staticmethod(read_tensors)

    def __init__(self, folder):
        super().__init__(folder)
        unknown = self.operators() - OPS.keys()
        if unknown:
            path = os.path.join(folder, "program.json")
            raise FormatError(f"{path}: operators outside opset {OPSET}: {', '.join(sorted(unknown))}")

    def stage(self, index):
        """Stage `index` as an nn.Module with copies of its parameters and buffers."""
        return StageModule(self, index)

    def model(self, border=None):
        """The whole model as one nn.Module; calls `border(stage)` at the beginning of each stage but the first."""
        return WholeModel(self, border)

    def find_program(self, training, stage, inputs):
        """The number of the program for this mode and these input shapes."""
        shapes = [None if x is None else list(x.shape) for x in inputs]
        for number, program in enumerate(self.program["programs"]):
            form = program["stages"][stage]
            wanted = [case.shape_of(form, entry) for entry in form["inputs"] if entry["from"] != "mask"]
            if program["training"] == training and wanted == shapes:
                return number
        raise ValueError(
            f"case {self.id}, stage {stage}: no program for {'train' if training else 'eval'}ing shapes {shapes}"
        )

    def loss(self, output, target, step=None, parameters=None):
        """The loss of a micro-batch. `output`: the first output of the model, or all of them, as the last stage returns
        them. A case with several targets or with `added` needs all, one with a loss_divisor the number of the step, and one
        with loss_parameters() these, {name: tensor}: those of the last stage, or of its take_loss()."""
        if step is None and any("loss_divisor" in one for one in self.steps):
            raise ValueError(f"case {self.id} divides its losses: loss() needs the number of the step")
        outputs = dict(zip(self.output_names(), self.flat_outputs(output)))
        compared, added = self.compared_outputs(), self.json["loss"].get("added", ())
        if missing := [name for name in (*compared, *added) if name not in outputs]:
            raise ValueError(f"case {self.id} reads output {missing[0]} in its loss: loss() needs all outputs")
        own = [(parameters or {}).get(name) for name in self.loss_parameters()]
        if any(parameter is None for parameter in own):
            raise ValueError(f"case {self.id} has parameters of the loss: loss() needs {', '.join(self.loss_parameters())}")
        targets = self.flat_targets(target)
        adjusted = (outputs[name] * own[0] + own[1] if own else outputs[name] for name in compared)
        losses = (self._own_loss(y, of) for y, of in zip(adjusted, targets, strict=True))
        total = functools.reduce(operator.add, losses)
        for name in added:
            if outputs[name] is not None:
                total = total + outputs[name]
        return total if step is None else self.divided(total, step)

    def divided(self, loss, step):
        """A loss as the user divides it; for losses of early stages too."""
        divisor = self.loss_divisor(step)
        return loss if divisor == 1 else loss / divisor

    def _own_loss(self, output, target):
        kind, reduction = self.json["loss"]["kind"], self.json["loss"]["reduction"]
        if kind == "sum":
            return output.mean() if reduction == "mean" else output.sum()
        if kind == "mse":
            return F.mse_loss(output, target, reduction=reduction)
        if kind == "cross-entropy":
            ignored, weights = self.json["loss"]["ignored_target"], self.json["loss"].get("class_weights")
            return F.cross_entropy(
                output.reshape(-1, output.shape[-1]),
                target.reshape(-1),
                weight=None if weights is None else torch.tensor(weights, dtype=output.dtype, device=output.device),
                reduction=reduction,
                ignore_index=-100 if ignored is None else ignored,
            )
        if kind == "output":
            return output
        raise FormatError(f"{self.folder}/case.json: loss.kind: this reader does not support {kind}")


def load(folder):
    """The case in a folder. Raises FormatError, in one line, if its files violate their formats."""
    return Case(folder)
