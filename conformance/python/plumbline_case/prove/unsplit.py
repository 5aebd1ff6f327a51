"""The expected terms: the whole model, run micro-batch by micro-batch under plain autograd, and the sums that the contract
prescribes for the case's schedule (INTERPRETING.md, Gradients). No code of the engine runs here, and none that cuts models."""

import bisect
import functools

import torch

from .. import place
from ..torch.optimizers import begin_states, put_states, update
from ..torch.tensors import Results
from ..torch.weight_closures import WeightClosures


def why_not_provable(case):
    """Why no proof takes the case, in one line; None if one does."""
    optimizer = case.json["optimizer"] or {}
    if "clip" in optimizer or optimizer.get("skip_nonfinite"):
        return "the optimizer reads a norm or a check of all gradients as a number, so that the update depends on data"
    if case.replicas > 1:
        return "data-parallel replicas: a library adds their gradients, in an order that it does not say"
    if case.whole_gradients:
        return "the gradient of a whole input is not followed to its micro-batches"
    copies = [case.forward_order(stage) for stage in range(case.stages)]
    writes = any(stage["buffer_updates"] for form in case.program["programs"] for stage in form["stages"])
    if writes and any(order != sorted(order) for orders in copies for order in orders):
        return "the model writes buffers, and a stage's forwards are not in the order of micro-batches"
    return None


class Unsplit:
    """Runs a case that was loaded under a recorder. `results` are tensors whose terms the recorder has."""

    def __init__(self, case):
        self.case, self.results = case, Results()
        self.model = case.model(border=self._border)
        self.states = begin_states(case, [(None, p["name"]) for p in case.program["parameters"]])
        self._first = []  # by stage: the sequence number of its first node
        self._closures = [WeightClosures() for _ in range(case.stages)] if self.model.weight_closures else None

    def run(self):
        last = len(self.case.steps) - 1
        for number, step in enumerate(self.case.steps):
            {
                "train": self._train,
                "eval": self._evaluate,
                "zero_grad": self._zero_grad,
                "optimizer": self._update,
                "read": self._read,
                "freeze": functools.partial(self._freeze, False),
                "unfreeze": functools.partial(self._freeze, True),
            }[step["kind"]](number)
        for name, buffer in self.model.named_buffers():
            self.results.put(last, "buffer", None, None, name, buffer)
        for name, parameter in self.model.named_parameters():
            self.results.put(last, "param", None, None, name, parameter)
        put_states(functools.partial(self.results.put, last), self.states)
        return self.results

    def _freeze(self, trains, number):
        for name in self.case.steps[number]["parameters"]:
            self.model.get_parameter(name).requires_grad_(trains)

    def _zero_grad(self, number):
        self.model.zero_grad(set_to_none=True)

    def _read(self, number):
        for name, parameter in self.model.named_parameters():
            if parameter.grad is not None:
                self.results.put(number, "grad", None, None, name, parameter.grad)

    def _update(self, number):
        options = self.case.json["optimizer"]
        for name, parameter in self.model.named_parameters():
            if parameter.grad is None:
                continue
            if "loss_scale" in options:
                parameter.grad = parameter.grad / options["loss_scale"]
            update([parameter], parameter.grad, self.states[None, name], options)

    def _evaluate(self, number):
        self.model.eval()
        with torch.no_grad():
            for m in range(self.case.microbatches):
                self._forward(number, m, self.case.inputs(number, m))

    def _train(self, number):
        self.model.train()
        before = {name: p.grad for name, p in self.model.named_parameters()}
        uses = [self._backward(number, m) for m in range(self.case.microbatches)]
        for name, parameter in self.model.named_parameters():
            total = None
            for stage in range(self.case.stages):
                for order in self.case.backward_order(stage):
                    of_microbatches = (self._hooked(uses[m].get((name, stage))) for m in order)
                    total = added(total, functools.reduce(added, of_microbatches, None))
            divide_by = self.case.json["gradients"]["divide_by"]
            if total is not None and divide_by != 1:
                total = total / divide_by
            parameter.grad = added(before[name], total)
        if self.case.json["optimizer"] is None:  # cases that update parameters leave these to read steps
            self._read(number)

    def _hooked(self, gradient):
        """A user's hook sees what autograd is about to accumulate, and doubles it."""
        return gradient * 2 if gradient is not None and self.case.json["parameter_hooks"] else gradient

    def _backward(self, number, microbatch):
        """{(parameter, stage): the gradient by the uses in that stage}"""
        case, needed = self.case, self.case.needs_gradients(number, microbatch)
        inputs = [leaf(x) if needed else x for x in case.inputs(number, microbatch)]
        losses = [loss for loss in self._forward(number, microbatch, inputs) if loss.requires_grad]
        names = {parameter: name for name, parameter in self.model.named_parameters()}
        uses = Uses(losses, names, self._stage_of)
        weights = [torch.full_like(loss, case.loss_weight(number, microbatch)) for loss in losses]
        self.model.zero_grad(set_to_none=True)
        with place.at(None, microbatch, "B"):
            if losses:
                torch.autograd.backward(losses, weights)
            for stage, closures in enumerate(self._closures or ()):
                self.model.zero_grad(set_to_none=True)
                closures.take()()
                for parameter, name in names.items():
                    uses.deliver(name, stage, parameter.grad)
        for entry, x in zip(case.json["inputs"], inputs, strict=True):
            if x is not None and x.grad is not None:
                self.results.put(number, "input-grad", None, microbatch, entry["name"], x.grad)
        return uses.sums()

    def _forward(self, number, microbatch, inputs):
        """The losses; puts them and the outputs."""
        case = self.case
        masks = {f"{s}/{name}": x for s in range(case.stages) for name, x in case.masks(number, s, microbatch).items()}
        with place.at(None, microbatch, "F"):
            self._first = []
            self._border(0)
            outputs = case.flat_outputs(self.model(*inputs, **masks))
            losses = {name: case.divided(loss, number) for name, loss in self.model.local_losses.items()}
            if case.has_loss(number):
                target = case.target(number, microbatch)
                losses["loss"] = case.loss(outputs, target, number, self.model.loss_parameters())
        for name, output in zip(case.output_names(), outputs, strict=True):
            if output is not None:
                self.results.put(number, "output", None, microbatch, name, output)
        for name, loss in losses.items():
            self.results.put(number, "loss", None, microbatch, name, loss)
        return list(losses.values())

    def _border(self, stage):
        self._first.append(torch.autograd._get_sequence_nr())
        if self._closures:
            self.model.weight_closures = self._closures[stage]

    def _stage_of(self, node):
        return bisect.bisect_right(self._first, node._sequence_nr()) - 1


class Uses:
    """The gradients of a backward by parameter and stage. Autograd sums the uses of a parameter over the whole model; a
    pipeline sums them stage by stage, so they are taken where autograd's nodes deliver them."""

    def __init__(self, roots, names, stage_of):
        """`names`: {parameter: its name}; `stage_of(node)` is the stage whose forward made a node."""
        self._gradients = {}
        seen, open_ = set(), [root.grad_fn for root in roots if root.grad_fn is not None]
        while open_:
            node = open_.pop()
            if node in seen:
                continue
            seen.add(node)
            leaves = [(i, names.get(getattr(next_, "variable", None))) for i, (next_, _) in enumerate(node.next_functions)]
            leaves = [(i, name) for i, name in leaves if name is not None]
            open_ += [next_ for next_, _ in node.next_functions if next_ is not None and not hasattr(next_, "variable")]
            if leaves:
                node.register_hook(functools.partial(self._note, leaves, stage_of(node)))
        self._nodes = seen  # so that the Python objects, whose identity counts above, live

    def _note(self, leaves, stage, gradients, _):
        for i, name in leaves:
            self.deliver(name, stage, gradients[i])

    def deliver(self, name, stage, gradient):
        if gradient is not None:
            self._gradients.setdefault((name, stage), []).append(gradient.detach())

    def sums(self):
        """In the order in which autograd delivered them."""
        return {key: functools.reduce(added, gradients) for key, gradients in self._gradients.items()}


def added(a, b):
    return b if a is None else a if b is None else a + b


def leaf(x):
    """An input of real numbers as a leaf that requires a gradient."""
    return x.clone().requires_grad_() if x is not None and x.is_floating_point() else x
