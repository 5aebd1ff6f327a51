"""A case with tensors of torch, and its stages as nn.Modules."""

import os

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

    def loss(self, output, target):
        """The loss of a micro-batch from output 0 of the model."""
        kind, reduction = self.json["loss"]["kind"], self.json["loss"]["reduction"]
        if kind == "sum":
            return output.mean() if reduction == "mean" else output.sum()
        if kind == "mse":
            return F.mse_loss(output, target, reduction=reduction)
        if kind == "cross-entropy":
            ignored = self.json["loss"]["ignored_target"]
            return F.cross_entropy(
                output.reshape(-1, output.shape[-1]),
                target.reshape(-1),
                reduction=reduction,
                ignore_index=-100 if ignored is None else ignored,
            )
        if kind == "output":
            return output
        raise FormatError(f"{self.folder}/case.json: loss.kind: this reader does not support {kind}")


def load(folder):
    """The case in a folder. Raises FormatError, in one line, if its files violate their formats."""
    return Case(folder)
