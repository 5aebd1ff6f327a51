"""A case folder as plumbline exports it."""

import copy
import csv
import functools
import os
import re

from .schema import FormatError, read_json
from .tensors import read_stored, read_tensors


#: what Case.extras() and Case.givens() may name
EXTRAS = (
    "class_weights", "added", "local_losses", "loss_divisor", "loss_parameters", "weight_decay", "loss_scale",
    "skip_nonfinite", "clip", "resumes", "accumulation_hooks", "weight_closures"
)  # fmt: skip
GIVENS = ("divided", "whole_gradients", "some_gradients", "early_exits", "several_targets")


def shape_of(form, entry):
    return None if entry["value"] is None else form["values"][entry["value"]]["shape"]


def outputs_of(form):
    """What a stage hands on: its outputs without the losses that stay in it."""
    return [entry for entry in form["outputs"] if entry["to"] != "loss"]


def has_isolated_loss(program):
    """Whether a stage of program.json has a loss of its own, and no gradient is sent to it: the backward of such a loss cannot
    begin where that of an output of the stage does."""
    return any(
        entry["to"] == "loss"
        for form in program["programs"]
        if form["training"]
        for number, stage in enumerate(form["stages"][:-1])
        if all(b["producer"] != number for b in form["boundaries"] if b["has_gradient"])
        for entry in stage["outputs"]
    )


def writes_buffers(program):
    """Whether a stage of program.json changes its buffers."""
    return any(stage["buffer_updates"] for form in program["programs"] for stage in form["stages"])


def filled(form, value_of):
    """A nested structure of case.json with value_of(name) in the place of each name."""
    if isinstance(form, dict):
        return {key: filled(inner, value_of) for key, inner in form.items()}
    return [filled(inner, value_of) for inner in form] if isinstance(form, list) else value_of(form)


def names_in(form):
    """[name]: those in a nested structure of case.json."""
    if isinstance(form, str):
        return [form]
    return [name for inner in (form.values() if isinstance(form, dict) else form) for name in names_in(inner)]


def flattened(form, value, what):
    """The reverse: {name: value}. Raises ValueError, which begins with `what`, if `value` has another form."""
    if isinstance(form, str):
        return {form: value}
    if not isinstance(value, dict if isinstance(form, dict) else (list, tuple)):
        raise ValueError(f"{what} {form} expected, {type(value).__name__} given")
    if len(form) != len(value):
        raise ValueError(f"{what} {form} expected, {len(value)} given")
    if isinstance(form, dict) and form.keys() != value.keys():
        raise ValueError(f"{what} {form} expected, {', '.join(map(str, value))} given")
    keys = form if isinstance(form, dict) else range(len(form))
    return {name: leaf for key in keys for name, leaf in flattened(form[key], value[key], what).items()}


def read_schedule(path):
    """[rank][position]: the cells of a schedule as strings, without empty ones. Raises FormatError, in one line, if it is no CSV
    file in UTF-8."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return [[cell.strip() for cell in row if cell.strip()] for row in csv.reader(file)]
    except (ValueError, csv.Error) as error:
        raise FormatError(f"{path}: no schedule in CSV ({error})") from None


def _member(name):
    return property(lambda self: self.json[name], doc=f"`{name}` of case.json")


class Case:
    """One exported case: the contents of case.json, program.json, schedule.csv and tensors.safetensors.

    Tensors are NumPy arrays; bfloat16 ones are their bits, in uint16 (`bf16_to_f32`, `f32_to_bf16`).

    json, program       case.json and program.json as Python has them; INTERPRETING.md explains every member
    tensors             {name: array}: all of tensors.safetensors
    pipeline_ranks      the ranks of one pipeline
    replicas            how many data-parallel replicas of it there are
    ranks               all of them: rank r is rank r % pipeline_ranks of replica r // pipeline_ranks
    shards_parameters   whether the replicas divide the parameters among them between their uses
    is_divided          whether the user divides each batch, and gives micro-batches that may differ in shape
    whole_gradients     whether each input is one leaf for the whole batch, whose gradient is read from it
    first_microbatch    in a part that of_replica() made: the number that its micro-batch 0 has in the case, and in results
    averages_replicas   in such a part: whether the case's gradients are the mean over the replicas of those of their parts,
                        else the sum
    """

    first_microbatch = 0
    averages_replicas = False

    def __init__(self, folder):
        self.folder = folder
        self.json = read_json(os.path.join(folder, "case.json"), "case")
        self.program = read_json(os.path.join(folder, "program.json"), "program")
        self._check_targets()
        self._of_microbatches = self.microbatches  # those over which a batch in tensors.safetensors is divided

    def _check_targets(self):
        """What the schema cannot say."""
        compared = self.json["loss"].get("outputs")
        place = f"{os.path.join(self.folder, 'case.json')}: loss.outputs"
        if (compared is None) != ("targets" not in self.json):
            raise FormatError(f"{place} and targets: expected both or neither")
        if compared is not None:
            if sorted(names_in(self.json["targets"])) != sorted(compared) or not set(compared) <= set(self.output_names()):
                raise FormatError(f"{place}: expected outputs of the model, each once in targets, got {', '.join(compared)}")

    @functools.cached_property
    def tensors(self):
        """{name: array}: all of tensors.safetensors, read at the first use."""
        return self.read_tensors(os.path.join(self.folder, "tensors.safetensors"))

    read_tensors = staticmethod(read_tensors)

    id, truth, dtype, microbatches = map(_member, ("id", "truth", "dtype", "microbatches"))
    steps, stages = map(_member, ("steps", "stages"))
    pipeline_ranks, replicas = (property(lambda self, name=name: self.json["mesh"][name]) for name in ("pp", "dp"))
    shards_parameters = property(lambda self: self.json.get("shards_parameters", False))
    is_divided = property(lambda self: self.json.get("divided", False))
    whole_gradients = property(lambda self: self.json.get("whole_gradients", False))
    ranks = property(lambda self: self.pipeline_ranks * self.replicas)

    def of_replica(self, replica):
        """The part of one data-parallel replica of the pipeline, as a case with one replica: its ranks, and its micro-batches,
        which count from 0 there."""
        if self.replicas == 1:
            return self
        own = self.microbatches // self.replicas
        begin, divide_by = replica * own, self.json["gradients"]["divide_by"]
        steps = [
            step | {"microbatches": step["microbatches"][begin : begin + own]} if "microbatches" in step else step
            for step in self.steps
        ]
        part = copy.copy(self)
        part.first_microbatch, part.averages_replicas = begin, divide_by != 1
        part.json = self.json | {
            "mesh": self.json["mesh"] | {"dp": 1},
            "microbatches": own,
            "steps": steps,
            "gradients": self.json["gradients"] | {"divide_by": divide_by / self.replicas if divide_by != 1 else 1},
        }
        return part

    def operators(self):
        """The names of all operators that the programs call."""
        stages = (stage for program in self.program["programs"] for stage in program["stages"])
        return {node["op"] for stage in stages for node in stage["nodes"]}

    def stage_program(self, step, stage, microbatch):
        """The op graph that a stage runs for a micro-batch of a step: see *program.json*."""
        return self.step_program(step, microbatch)["stages"][stage]

    def step_program(self, step, microbatch):
        """The program that a micro-batch of a step runs: its `boundaries` and `stages`."""
        return self.program["programs"][self.steps[step]["microbatches"][microbatch]["program"]]

    def parameters(self, stage):
        """{name: initial value} of the parameters of which a stage has a copy."""
        return self._owned("parameter", stage)

    def buffers(self, stage):
        """{name: initial value} of the buffers of which a stage has a copy."""
        return self._owned("buffer", stage)

    def _owned(self, kind, stage):
        entries = self.program[kind + "s"]
        return {e["name"]: self.tensors[f"{kind}/{e['name']}"] for e in entries if stage in e["stages"]}

    def optimizer_state(self):
        """{parameter: {entry: array}} with which a case that resumes begins, entries as in *The optimizer*; else {}."""
        states = {}
        for key, tensor in self.tensors.items() if self.json.get("resumes") else ():
            if key.startswith("optimizer/"):
                name, _, entry = key.removeprefix("optimizer/").rpartition("/")
                states.setdefault(name, {})[entry] = tensor
        return states

    def output_names(self):
        """Names of the model's outputs in results, in the order of the program."""
        return [e["name"] for e in self.program["programs"][0]["stages"][-1]["outputs"] if e["to"] == "model"]

    def local_losses(self, stage):
        """Names of the losses that stay in a stage: its backward begins at them as well. See *The loss*."""
        return [e["name"] for e in self.program["programs"][0]["stages"][stage]["outputs"] if e["to"] == "loss"]

    def nested_outputs(self, flat):
        """The model's result, from its outputs in the order of the program: a tensor for one output, else a tuple, or the
        dict that case.json describes."""
        if "outputs" not in self.json:
            return flat[0] if len(flat) == 1 else tuple(flat)
        return filled(self.json["outputs"], dict(zip(self.output_names(), flat, strict=True)).__getitem__)

    def flat_outputs(self, outputs):
        """The reverse of nested_outputs, for the result of any stage: a tuple in the order of the program."""
        if not isinstance(outputs, dict):
            return tuple(outputs) if isinstance(outputs, (tuple, list)) else (outputs,)
        by_name = flattened(self.json["outputs"], outputs, f"case {self.id}: outputs")
        return tuple(by_name[name] for name in self.output_names())

    def compared_outputs(self):
        """Names of the outputs from which the loss is computed, each with a target of its own, in the order in which their losses
        are added: the first output in cases without several targets."""
        return self.json["loss"].get("outputs") or self.output_names()[:1]

    def nested_targets(self, flat):
        """What target() returns, from the targets in the order of compared_outputs()."""
        if "targets" not in self.json:
            return flat[0]
        return filled(self.json["targets"], dict(zip(self.compared_outputs(), flat, strict=True)).__getitem__)

    def flat_targets(self, target):
        """The reverse of nested_targets."""
        if "targets" not in self.json:
            return [target]
        by_name = flattened(self.json["targets"], target, f"case {self.id}: targets")
        return [by_name[name] for name in self.compared_outputs()]

    @property
    def offloads(self):
        """Whether the schedule moves activations away between forward and backward (OFFLOAD, RELOAD)."""
        return any("OFFLOAD" in cell for row in self.schedule() for cell in row)

    def schedule(self):
        """[rank][position]: the cells of schedule.csv, as read_schedule() has them."""
        rows = read_schedule(os.path.join(self.folder, "schedule.csv"))
        return rows[: self.ranks]  # of a replica: those of replica 0, whose micro-batches count from 0

    # --- the data of a step -------------------------------------------------------------------------------------

    def batch_inputs(self, step):
        """The whole batch, [input]; None for an input that the step lacks. A `divided` case has none: see inputs()."""
        return self._inputs(step, 0, self.microbatches)

    def batch_target(self, step):
        """The target of the whole batch; with several targets the dict or list of them that case.json describes; None for a
        step without a target."""
        return self._target(step, 0, self.microbatches)

    def inputs(self, step, microbatch):
        """The inputs of stage 0 for a micro-batch, [input]."""
        return self._inputs(step, microbatch, microbatch + 1)

    def target(self, step, microbatch):
        """The same for a micro-batch."""
        return self._target(step, microbatch, microbatch + 1)

    def pieces(self, inputs, microbatch):
        """The inputs of a micro-batch, as views of a whole batch: of leaves that the caller made of batch_inputs()."""
        chunks = [entry["chunk"] for entry in self.json["inputs"]]
        return [self._rows(x, chunk, microbatch, microbatch + 1) for x, chunk in zip(inputs, chunks, strict=True)]

    def needs_gradients(self, step, microbatch):
        """Whether the inputs of real numbers of a micro-batch require gradients."""
        step = self.steps[step]
        some = step["microbatches"][microbatch].get("input_gradients", True)
        return step["kind"] == "train" and self.json["input_gradients"] and some

    def _inputs(self, step, begin, end):
        entries = self.json["inputs"]
        return [self._given(f"step/{step}/input/{entry['name']}", entry["chunk"], begin, end) for entry in entries]

    def _target(self, step, begin, end):
        given = lambda name: self._given(f"step/{step}/target{name}", self.json["target"], begin, end)
        if "targets" not in self.json:
            return given("")
        return filled(self.json["targets"], lambda name: given("/" + name)) if self.steps[step]["target"] else None

    def _given(self, name, chunk, begin, end):
        if not self.is_divided:
            return self._rows(self.tensors.get(name), chunk, begin, end)
        if end - begin != 1:
            raise ValueError(f"case {self.id}: its user divides the batch; take the inputs and targets of each micro-batch")
        return self.tensors.get(f"{name}/{self.first_microbatch + begin}")

    def _rows(self, whole, chunk, begin, end):
        """Those of the micro-batches from `begin` to before `end`. Of n rows the first n mod m micro-batches get one more than
        the others."""
        count = self._of_microbatches
        if whole is None or chunk == "replicate" or end - begin == count:
            return whole
        rows, more = divmod(whole.shape[chunk["dim"]], count)
        first, last = (m * rows + min(m, more) for m in (self.first_microbatch + begin, self.first_microbatch + end))
        return whole[(slice(None),) * chunk["dim"] + (slice(first, last),)]

    def masks(self, step, stage, microbatch):
        """{name: mask}: the factors of a stage's random layers; empty without such layers, and in evaluation."""
        prefix = f"step/{step}/mask/{stage}/{self.first_microbatch + microbatch}/"
        return {key.removeprefix(prefix): mask for key, mask in self.tensors.items() if key.startswith(prefix)}

    def has_loss(self, step):
        """Whether the step has a loss: an evaluation without a target may have outputs only."""
        return self.steps[step]["loss"]

    def loss_parameters(self):
        """The names of the parameters of the loss function, its scale and its shift; else []. The last stage owns them."""
        return self.json["loss"].get("parameters", [])

    def loss_divisor(self, step):
        """The number by which the user divides every loss of a step, those of early stages too."""
        return self.steps[step].get("loss_divisor", 1)

    def extras(self):
        """The names of what many cases lack and this one has: a backend declines those that it does not implement, since
        ignoring one means running a different case. Of the loss: "class_weights", "added", "local_losses",
        "loss_divisor", "loss_parameters"; of the optimizer: "weight_decay" (SGD's), "loss_scale", "skip_nonfinite", "clip",
        "resumes"; of the backward: "accumulation_hooks", "weight_closures". (Hooks on values are an operator: see
        operators().)"""
        optimizer = dict(self.json["optimizer"] or {})
        if optimizer.get("kind") == "adamw":
            del optimizer["weight_decay"]
        found = {name for name in ("class_weights", "added") if name in self.json["loss"]}
        found |= {"loss_parameters"} if self.loss_parameters() else set()
        found |= {name for name in ("weight_decay", "loss_scale", "skip_nonfinite", "clip") if optimizer.get(name)}
        found |= {"local_losses" for stage in range(self.stages) if self.local_losses(stage)}
        found |= {name for name in ("resumes", "accumulation_hooks", "weight_closures") if self.json.get(name)}
        return found | {"loss_divisor" for step in self.steps if "loss_divisor" in step}

    def givens(self):
        """How the user gives batches and takes their results, in this case and in few others; a backend declines those that
        it does not name. "divided"; "whole_gradients"; "some_gradients": inputs that require gradients in some
        micro-batches only; "early_exits": micro-batches of an evaluation that leave at an early stage; "several_targets": a
        dict or list of targets."""
        found = {name for name in ("divided", "whole_gradients") if self.json.get(name)}
        found |= {"several_targets"} if "targets" in self.json else set()
        entries = (entry for step in self.steps for entry in step.get("microbatches", ()))
        found |= {"some_gradients" for entry in entries if "input_gradients" in entry}
        early = (entry for form in self.program["programs"] for stage in form["stages"][:-1] for entry in stage["outputs"])
        return found | {"early_exits" for entry in early if entry["to"] == "model"}

    def loss_weight(self, step, microbatch):
        """The initial gradient of the backward of each loss of a micro-batch; contains the optimizer's loss_scale."""
        return self.steps[step]["microbatches"][microbatch]["loss_weight"]

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

    # --- the expected results -----------------------------------------------------------------------------------

    def expected(self):
        """{result key: Stored}: the expected results, in a folder that was exported with them."""
        return read_stored(os.path.join(self.folder, "expected.safetensors"))


def load(folder):
    """The case in a folder. Raises FormatError, in one line, if its files violate their formats."""
    return Case(folder)
