"""Runs a case in one process with plain torch, stage after stage: a direct implementation of INTERPRETING.md.

    python -m plumbline_case.torch run FOLDER -o rank0.safetensors
"""

import functools

import torch

from ..case import outputs_of
from ..schema import FormatError
from .modules import separate_gradients
from .optimizers import begin_states, clip_factor, norm_of, put_states, scale, share_of_norm, update
from .tensors import Results


def run_case(case):
    """The results. Raises FormatError, in one line, for well-formed files with contents that torch rejects."""
    try:
        return OneProcess(case).run()
    except FormatError:
        raise
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        why = (str(error).strip().splitlines() or [""])[0]
        raise FormatError(f"{case.folder}: cannot be run: {type(error).__name__}: {why}") from error


def leaf(x):
    """An input as a leaf that requires a gradient, if it has real numbers."""
    return x.clone().requires_grad_() if x is not None and x.is_floating_point() else x


class OneProcess:
    def __init__(self, case):
        torch.set_num_threads(1)
        self.case = case
        # Cases that update parameters leave out what belongs to a train step, even where a read step delivers `grad`.
        self.details = case.json["optimizer"] is None
        self.results = Results()
        self.stages = [case.stage(s) for s in range(case.stages)]
        self.gradients = {}  # by parameter name: accumulated over all steps so far
        names = [(None, parameter["name"]) for parameter in case.program["parameters"]]
        self.optimizer_states = begin_states(case, names)  # all copies of a parameter have one
        self.hook_calls = {}  # by stage and parameter or boundary, since the last query
        self.seen = {}  # by stage and parameter: what the hook after an accumulation found last
        for s, stage in enumerate(self.stages):
            for name, parameter in stage.named_parameters():
                if parameter.requires_grad and case.json["parameter_hooks"]:
                    parameter.register_hook(self.hook(s, name))
                if parameter.requires_grad and case.json.get("accumulation_hooks"):
                    parameter.register_post_accumulate_grad_hook(self.after_accumulation(s, name))

    def run(self):
        for number, step in enumerate(self.case.steps):
            if step["kind"] == "train":
                self.train(number)
            elif step["kind"] == "eval":
                self.evaluate(number)
            elif step["kind"] == "zero_grad":
                self.gradients = {}
            elif step["kind"] == "optimizer":
                self.update(number)
            elif step["kind"] == "read":
                for name, grad in self.gradients.items():
                    self.results.put(number, "grad", None, None, name, grad)
            elif step["kind"] in ("freeze", "unfreeze"):
                for stage in self.stages:
                    for name, parameter in stage.named_parameters():
                        if name in step["parameters"]:
                            parameter.requires_grad_(step["kind"] == "unfreeze")
            else:
                raise ValueError(f"case {self.case.id}: a step of kind {step['kind']}")
        last = len(self.case.steps) - 1
        for stage in self.stages:
            for name, buffer in stage.named_buffers():
                self.results.put(last, "buffer", None, None, name, buffer)
            for name, parameter in stage.named_parameters():
                self.results.put(last, "param", None, None, name, parameter)
        if "optimizer-state" in self.case.json["results"]:
            put_states(functools.partial(self.results.put, last), self.optimizer_states)
        return self.results

    def hook(self, s, name):
        """A user's hook: doubles the gradient and counts the call."""

        def double(grad):
            self.count(s, name)
            return grad * 2

        return double

    def after_accumulation(self, s, name):
        """A user's hook after an accumulation: keeps .grad and counts the call."""

        def see(parameter):
            self.count(s, name)
            self.seen[s, name] = parameter.grad.clone()

        return see

    def count(self, s, name):
        self.hook_calls[s, name] = self.hook_calls.get((s, name), 0) + 1

    def put_hook_calls(self, number, s, microbatch, name):
        self.put(number, "hook-calls", s, microbatch, name, torch.tensor(self.hook_calls.pop((s, name), 0)))

    def put(self, *key_and_tensor):
        if self.details:
            self.results.put(*key_and_tensor)

    def forwards(self, number, training):
        """Runs stage after stage, each in the order of its F. Returns for each micro-batch its program, [stage] (inputs,
        outputs, losses that stay there), and the loss."""
        case, runs = self.case, []
        self.leaves = [leaf(x) for x in case.batch_inputs(number)] if training and case.whole_gradients else None
        for microbatch in range(case.microbatches):
            program = case.program["programs"][case.steps[number]["microbatches"][microbatch]["program"]]
            runs.append([program, [], None])
        crossing = [{} for _ in runs]  # [micro-batch][boundary]
        for s in range(case.stages):
            for order in case.forward_order(s):
                for microbatch in order:
                    self.forward(number, s, microbatch, training, runs[microbatch], crossing[microbatch])
        return runs

    def forward(self, number, s, microbatch, training, run, crossing):
        case, stage = self.case, self.stages[s]
        program, lanes, _ = run
        form = program["stages"][s]
        stage.train(training)
        inputs = []
        if s == 0 and self.leaves:
            inputs = case.pieces(self.leaves, microbatch)
        elif s == 0:
            needed = case.needs_gradients(number, microbatch)
            inputs = [leaf(x) if needed else x for x in case.inputs(number, microbatch)]
        for entry in form["inputs"]:
            if entry["from"] == "boundary" and entry["value"] is None:
                inputs.append(None)
            elif entry["from"] == "boundary":
                x = crossing[entry["name"]].detach().clone()
                inputs.append(x.requires_grad_(training and (x.is_floating_point() or x.is_complex())))
                if case.json["boundary_hooks"] and x.requires_grad:
                    x.register_hook(lambda _, name=entry["name"]: self.count(s, name))
        outputs = case.flat_outputs(stage(*inputs, **case.masks(number, s, microbatch)))
        for entry, value in zip(outputs_of(form), outputs, strict=True):
            if value is None:
                continue
            if entry["to"] == "boundary":
                crossing[entry["name"]] = value
                self.put(number, "forward", s, microbatch, entry["name"], value)
            else:
                self.put(number, "output", None, microbatch, entry["name"], value)
        losses = {name: case.divided(loss, number) for name, loss in stage.local_losses.items()}
        lanes.append((inputs, outputs, list(losses.values())))
        last = tuple(value for entry, value in zip(outputs_of(form), outputs, strict=True) if entry["to"] == "model")
        if last and case.has_loss(number):  # in the last stage, or where the micro-batch leaves early
            run[2] = losses["loss"] = case.loss(last, case.target(number, microbatch), number, stage.loss_parameters())
        for name, loss in losses.items():
            self.results.put(number, "loss", None, microbatch, name, loss)

    def evaluate(self, number):
        with torch.no_grad():
            self.forwards(number, False)

    def train(self, number):
        case = self.case
        runs = self.forwards(number, True)
        handed_back = [{} for _ in runs]  # [micro-batch][boundary]: gradients by consumer
        sums = {}  # by parameter name, copies by ascending stage
        for s in reversed(range(case.stages)):
            copies = []
            for order in case.backward_order(s):
                for microbatch in order:
                    self.backward(number, s, microbatch, runs[microbatch], handed_back[microbatch])
                copies.append({name: p.grad for name, p in self.stages[s].named_parameters()})
                for parameter in self.stages[s].parameters():
                    parameter.grad = None
            for name in copies[0]:
                sums.setdefault(name, []).insert(0, [copy[name] for copy in copies])
        for name, by_stage in sums.items():
            shares = [grad for copies in by_stage for grad in copies if grad is not None]
            if not shares:
                continue
            total = shares[0]
            for share in shares[1:]:
                total = total + share
            if case.json["gradients"]["divide_by"] != 1:
                total = total / case.json["gradients"]["divide_by"]
            self.gradients[name] = self.gradients[name] + total if name in self.gradients else total
        for name, grad in self.gradients.items():
            self.put(number, "grad", None, None, name, grad)
        for entry, x in zip(case.json["inputs"], self.leaves or (), strict=False):
            if x is not None and x.grad is not None:
                self.put(number, "input-grad", None, None, entry["name"], x.grad)

    def backward(self, number, s, microbatch, run, handed_back):
        program, lanes, loss = run
        inputs, outputs, losses = lanes[s]
        form = program["stages"][s]
        boundaries = {entry["name"]: entry for entry in program["boundaries"]}
        roots, grads = [], []
        if s + 1 == len(lanes):
            losses = [loss, *losses]
        else:
            for entry, value in zip(outputs_of(form), outputs, strict=True):
                if value is not None and boundaries[entry["name"]]["has_gradient"]:
                    shares = handed_back[entry["name"]]
                    grad = shares[max(shares)]
                    for consumer in sorted(shares, reverse=True)[1:]:
                        grad = grad + shares[consumer]
                    roots.append(value)
                    grads.append(grad)
        for one in losses:
            if one.requires_grad:
                roots.append(one)
                grads.append(torch.full_like(one, self.case.loss_weight(number, microbatch)))
        if roots:
            torch.autograd.backward(roots, grads)
            if self.stages[s].weight_closures:
                self.stages[s].weight_closures.take()()
            separate_gradients(self.stages[s])
        names = [entry for entry in form["inputs"] if entry["from"] != "mask"]
        for entry, x in zip(names, inputs, strict=True):
            if x is None:
                continue
            if entry["from"] == "model" and not self.leaves and x.grad is not None:
                self.put(number, "input-grad", None, microbatch, entry["name"], x.grad)
            if entry["from"] == "boundary" and boundaries[entry["name"]]["has_gradient"]:
                grad = torch.zeros_like(x) if x.grad is None else x.grad
                handed_back.setdefault(entry["name"], {})[s] = grad
                self.put(number, "backward", s, microbatch, entry["name"], grad)
                if self.case.json["boundary_hooks"]:
                    self.put_hook_calls(number, s, microbatch, entry["name"])
        for name, parameter in self.stages[s].named_parameters():
            if parameter.grad is not None:
                self.put(number, "partial", s, microbatch, name, parameter.grad)
                if self.case.json["parameter_hooks"] or self.case.json.get("accumulation_hooks"):
                    self.put_hook_calls(number, s, microbatch, name)
                if (s, name) in self.seen:
                    self.put(number, "accumulated", s, microbatch, name, self.seen.pop((s, name)))

    def update(self, number):
        """An optimizer step. Each change of the gradients makes new ones: a parameter's may be the memory of another's."""
        options = self.case.json["optimizer"]
        if options.get("skip_nonfinite") and not all(bool(g.isfinite().all()) for g in self.gradients.values()):
            return
        if "loss_scale" in options:
            self.gradients = {name: grad / options["loss_scale"] for name, grad in self.gradients.items()}
        if clip := options.get("clip"):
            norm = norm_of({name: share_of_norm(grad, clip["norm"]) for name, grad in self.gradients.items()}, clip["norm"])
            self.results.put(number, "grad-norm", None, None, "norm", torch.tensor(norm, dtype=torch.float64))
            if (factor := clip_factor(norm, clip)) is not None:
                self.gradients = {name: scale(grad.clone(), factor) for name, grad in self.gradients.items()}
        for name, grad in self.gradients.items():
            copies = [p for stage in self.stages for own, p in stage.named_parameters() if own == name]
            update(copies, grad, self.optimizer_states[None, name], options)
