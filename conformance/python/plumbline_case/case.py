"""A case folder as plumbline exports it."""

import csv
import os
import re

import torch
import torch.nn.functional as F

from .modules import StageModule, WholeModel
from .ops import OPS, OPSET
from .schema import FormatError, read_json
from .tensors import read_tensors

def shape_of(form, entry):
    return None if entry["value"] is None else form["values"][entry["value"]]["shape"]


class Case:
    """One exported case: the contents of case.json, program.json, schedule.csv and tensors.safetensors."""

    def __init__(self, folder):
        self.folder = folder
        self.json = read_json(os.path.join(folder, "case.json"), "case")
        self.program = read_json(os.path.join(folder, "program.json"), "program")
        self.tensors = read_tensors(os.path.join(folder, "tensors.safetensors"))
        unknown = {
            node["op"]
            for program in self.program["programs"]
            for stage in program["stages"]
            for node in stage["nodes"]
            if node["op"] not in OPS
        }
        if unknown:
            raise FormatError(f"{folder}/program.json: operators outside opset {OPSET}: {', '.join(sorted(unknown))}")

    id = property(lambda self: self.json["id"])
    steps = property(lambda self: self.json["steps"])
    stages = property(lambda self: self.program["stages"])
    microbatches = property(lambda self: self.json["microbatches"])

    def stage(self, index):
        """Stage `index` as an nn.Module with copies of its parameters and buffers."""
        return StageModule(self, index)

    def model(self, border=None):
        """The whole model as one nn.Module; calls `border(stage)` at the beginning of each stage but the first."""
        return WholeModel(self, border)

    def output_names(self):
        """Names of the model's outputs in results, in the order of the program. The loss is computed from the first."""
        return [entry["name"] for entry in self.program["programs"][0]["stages"][-1]["outputs"]]

    def nested_outputs(self, flat):
        """The model's result, from its outputs in the order of the program: a tensor for one output, else a tuple, or the
        dict that case.json describes."""
        if "outputs" not in self.json:
            return flat[0] if len(flat) == 1 else tuple(flat)
        by_name = dict(zip(self.output_names(), flat, strict=True))

        def filled(form):
            if isinstance(form, dict):
                return {key: filled(inner) for key, inner in form.items()}
            return [filled(inner) for inner in form] if isinstance(form, list) else by_name[form]

        return filled(self.json["outputs"])

    def flat_outputs(self, outputs):
        """The reverse of nested_outputs, for the result of any stage: a tuple in the order of the program."""
        if not isinstance(outputs, dict):
            return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
        by_name = {}

        def take(form, value):
            if isinstance(form, str):
                by_name[form] = value
                return
            if len(form) != len(value):
                raise ValueError(f"case {self.id}: outputs {form} expected, {len(value)} given")
            for key in form if isinstance(form, dict) else range(len(form)):
                take(form[key], value[key])

        take(self.json["outputs"], outputs)
        return tuple(by_name[name] for name in self.output_names())

    def schedule(self):
        """[rank][position]: the cells of schedule.csv as strings, without empty ones."""
        with open(os.path.join(self.folder, "schedule.csv"), newline="", encoding="utf-8") as file:
            return [[cell.strip() for cell in row if cell.strip()] for row in csv.reader(file)]

    def find_program(self, training, stage, inputs):
        """The number of the program for this mode and these input shapes."""
        shapes = [None if x is None else list(x.shape) for x in inputs]
        for number, program in enumerate(self.program["programs"]):
            form = program["stages"][stage]
            wanted = [shape_of(form, entry) for entry in form["inputs"] if entry["from"] != "mask"]
            if program["training"] == training and wanted == shapes:
                return number
        raise ValueError(f"case {self.id}, stage {stage}: no program for {'train' if training else 'eval'}ing shapes {shapes}")

    # --- the data of a step -------------------------------------------------------------------------------------

    def batch_inputs(self, step):
        """The whole batch, [input]; None for an input that the step lacks."""
        return [self.tensors.get(f"step/{step}/input/{entry['name']}") for entry in self.json["inputs"]]

    def batch_target(self, step):
        return self.tensors.get(f"step/{step}/target")

    def inputs(self, step, microbatch):
        """The inputs of stage 0 for a micro-batch, [input]."""
        return [
            self._chunk(x, entry["chunk"], microbatch)
            for entry, x in zip(self.json["inputs"], self.batch_inputs(step), strict=True)
        ]

    def target(self, step, microbatch):
        return self._chunk(self.batch_target(step), self.json["target"], microbatch)

    def _chunk(self, whole, chunk, microbatch):
        if whole is None or chunk == "replicate":
            return whole
        return torch.tensor_split(whole, self.microbatches, chunk["dim"])[microbatch]

    def masks(self, step, stage, microbatch):
        """{name: mask}: the factors of a stage's random layers; empty without such layers, and in evaluation."""
        prefix = f"step/{step}/mask/{stage}/{microbatch}/"
        return {key.removeprefix(prefix): mask for key, mask in self.tensors.items() if key.startswith(prefix)}

    def has_loss(self, step):
        """Whether the step has a loss: an evaluation without a target may have outputs only."""
        return self.steps[step]["loss"]

    def loss_weight(self, step, microbatch):
        """The initial gradient of the backward of a micro-batch's loss."""
        return self.steps[step]["microbatches"][microbatch]["loss_weight"]

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

    def forward_order(self, stage):
        """The micro-batches of a stage in the order of its forwards in schedule.csv (in which its buffers are updated),
        [copy][position]."""
        return self._order(stage, "F")

    def backward_order(self, stage):
        """The micro-batches of a stage in the order in which schedule.csv adds up their gradients, [copy][position]:
        that of its W if the backward is split, else of its B. Most schedules have one copy of each stage."""
        return self._order(stage, "BW")

    def _order(self, stage, letters):
        copies = []
        for row in self.schedule():
            cells = re.findall(rf"(?<![0-9]){stage}[{letters}]([0-9]+)", ";".join(row))
            if cells:
                copies.append([int(microbatch) for microbatch in cells])
        return copies


def load(folder):
    return Case(folder)
