"""The stages of a case, and its whole model, as nn.Modules with their parameters under canonical names."""

from torch import nn

from ..case import outputs_of
from .ops import evaluate
from .weight_closures import WeightClosures


def own(root, name, tensor, requires_grad=None):
    """Registers `tensor` under the dotted `name`, and creates the modules on the path: a parameter if `requires_grad` is
    given, else a buffer."""
    *path, leaf = name.split(".")
    for part in path:
        if part not in root._modules:
            root.add_module(part, nn.Module())
        root = root._modules[part]
    if requires_grad is None:
        root.register_buffer(leaf, tensor)
    else:
        root.register_parameter(leaf, nn.Parameter(tensor, requires_grad=requires_grad))


def separate_gradients(module):
    """After a backward: gives every parameter's gradient separate memory. Autograd lets leaves share memory if it reaches
    them through views, and adds to it in place (pytorch issue 34082)."""
    for parameter in module.parameters():
        if parameter.grad is not None:
            parameter.grad = parameter.grad.clone()


class Programs(nn.Module):
    """The common base of a stage and the whole model: owned tensors, and the choice of a program by mode and shapes."""

    def __init__(self, case, stages):
        super().__init__()
        self._case = case
        self.local_losses = {}
        #: in a case with `weight_closures`, the work that the backwards so far have left: see WeightClosures.take()
        self.weight_closures = WeightClosures() if case.json.get("weight_closures") else None
        for kind in ("parameters", "buffers"):
            for entry in case.program[kind]:
                if not set(entry["stages"]) & set(stages):
                    continue
                tensor = case.tensors[f"{kind[:-1]}/{entry['name']}"].clone()
                own(self, entry["name"], tensor, entry.get("requires_grad"))

    def loss_parameters(self):
        """{name: parameter}: those of the loss function, if this has the last stage; see Case.loss()."""
        own = dict(self.named_parameters())
        return {name: own[name] for name in self._case.loss_parameters() if name in own}

    def take_loss(self):
        """An nn.Module with loss_parameters(), which are this module's no longer: for an engine whose user keeps the loss
        function apart. None if there are none."""
        if not self.loss_parameters():
            return None
        taken = nn.Module()
        taken.add_module("loss", self._modules.pop("loss"))
        return taken

    def _run(self, program, stage, inputs, masks):
        """The outputs of one stage as it returns them: a tensor for one output, else a tuple; the last stage returns the
        model's result."""
        case = self._case
        form = case.program["programs"][program]["stages"][stage]
        values = [None] * len(form["values"])
        given = iter(inputs)
        for entry in form["inputs"]:
            value = masks[entry["name"]] if entry["from"] == "mask" else next(given)
            if entry["value"] is not None:
                values[entry["value"]] = value
        for kind, find in (("parameters", self.get_parameter), ("buffers", self.get_buffer)):
            for entry in form[kind]:
                if entry["value"] is not None:
                    values[entry["value"]] = find(entry["name"])
        for entry in form["constants"]:
            values[entry["value"]] = case.tensors[entry["tensor"]]
        evaluate(form["nodes"], values, self.weight_closures.operators() if self.weight_closures else {})
        for entry in form["buffer_updates"]:
            # Detached rather than under no_grad, which a tracer would turn into a separate region.
            self.get_buffer(entry["name"]).copy_(values[entry["value"]].detach())
        made = [(e["to"], e["name"], None if e["value"] is None else values[e["value"]]) for e in form["outputs"]]
        losses = {name: value for to, name, value in made if to == "loss" and value is not None}
        if losses:  # not otherwise: a tracer would see the assignment
            self.local_losses |= losses
        outputs = [value for to, _, value in made if to != "loss"]
        if any(to == "model" for to, _, _ in made):
            return case.nested_outputs(outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


class StageModule(Programs):
    """Stage `index` of a case: forward(*inputs, **masks) -> the outputs, a tensor for one output, else a tuple; the
    last stage may return a dict (`case.flat_outputs` converts any of these to a tuple).

    Inputs and outputs are in the order of the program, and may be None. Losses that stay in the stage are no outputs: after
    a forward they are in `local_losses`, {name: scalar}, not divided yet (see case.divided). self.training and the shapes of
    the inputs select the program. Masks of other stages are ignored, so that an engine may pass all masks to every stage.
    """

    def __init__(self, case, index):
        super().__init__(case, [index])
        self.index = index

    def forms(self):
        return [program["stages"][self.index] for program in self._case.program["programs"]]

    def input_names(self):
        return [entry["name"] for entry in self.forms()[0]["inputs"] if entry["from"] != "mask"]

    def output_names(self):
        return [entry["name"] for entry in outputs_of(self.forms()[0])]

    def forward(self, *inputs, **masks):
        if self._case.local_losses(self.index):
            self.local_losses = {}
        program = self._case.find_program(self.training, self.index, inputs)
        return self._run(program, self.index, inputs, masks)


class WholeModel(Programs):
    """The whole model: forward(*model inputs, **masks) -> its outputs, a tensor for one output, else a tuple or a dict.

    Before each stage but the first it calls `border`, if given, with the number of that stage: for example
    torch.distributed.pipelining.pipe_split. Masks are named "STAGE/NAME". `local_losses` has those of all stages.
    """

    def __init__(self, case, border=None):
        super().__init__(case, range(case.stages))
        self._border = border

    def forward(self, *inputs, **masks):
        case = self._case
        program = case.find_program(self.training, 0, inputs)
        if any(map(case.local_losses, range(case.stages))):
            self.local_losses = {}
        crossing = {}
        outputs = ()
        for stage in range(case.stages):
            if stage and self._border:
                self._border(stage)
            form = case.program["programs"][program]["stages"][stage]
            names = [entry["name"] for entry in form["inputs"] if entry["from"] == "boundary"]
            own_masks = {name.partition("/")[2]: mask for name, mask in masks.items() if name.startswith(f"{stage}/")}
            outputs = self._run(program, stage, inputs if stage == 0 else [crossing[n] for n in names], own_masks)
            made = list(zip(outputs_of(form), case.flat_outputs(outputs), strict=True))
            if stage + 1 < case.stages and any(entry["to"] == "model" for entry, _ in made):  # it leaves early
                return case.nested_outputs([value for entry, value in made if entry["to"] == "model"])
            crossing |= {entry["name"]: value for entry, value in made}
        return outputs
