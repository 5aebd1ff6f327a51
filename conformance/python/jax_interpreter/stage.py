"""A stage as a pure function, and its derivative, which is JAX's (jax.vjp)."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from dependence import reached
from losses import loss_of
from numerics import quotient
from operators import evaluate


class Sources(NamedTuple):
    """{name: array} of the inputs of a stage, by their `from`, and of what it owns."""

    model: dict
    boundary: dict
    mask: dict
    parameters: dict
    buffers: dict


class Roots(NamedTuple):
    """Where the backward begins, {name: value} each: boundaries to which a gradient is sent, and losses."""

    boundaries: dict
    losses: dict


class Made(NamedTuple):
    """All that a forward makes, {name: value} each, None left out."""

    outputs: dict
    losses: dict
    buffers: dict


class Forward:
    """The forward of a stage for one micro-batch of a step, and then its backward.

    `parts` are those of the backward: "B", or "IW" for one in halves. The derivative has the arguments weights, {name:
    array}, and inputs, {name: array}: what the roots depend on. Recomputed, a backward begins with the forward again.
    """

    def __init__(self, case, step, stage, microbatch, sources, trained, hooks, parts, recomputed):
        self.case, self.step, self.stage, self.microbatch = case, step, stage, microbatch
        self.sources, self.hooks = sources, hooks
        self.form = case.stage_program(step, stage, microbatch)
        self.with_gradient = {b["name"] for b in case.step_program(step, microbatch)["boundaries"] if b["has_gradient"]}
        self.has_loss = stage + 1 == case.stages and case.has_loss(step)
        training = case.steps[step]["kind"] == "train"
        depends = reached(self.form, self.root_values()) if training else set()
        of_loss = case.loss_parameters() if training and self.has_loss else ()
        self.weights = {
            e["name"]: sources.parameters[e["name"]]
            for e in self.form["parameters"]
            if (e["value"] in depends or e["name"] in of_loss) and e["name"] in trained
        }
        self.inputs = {
            e["name"]: getattr(sources, e["from"])[e["name"]]
            for e in self.form["inputs"]
            if e["value"] in depends and self.wants_gradient(e)
        }
        self.pulls = {}
        if training and not recomputed:
            for part in parts:
                self.pulls[part], self.made = self.derivative(part)
        else:
            _, self.made = self.run(self.weights, self.inputs)

    def wants_gradient(self, entry):
        """Of an input that is a real number."""
        if entry["from"] == "boundary":
            return entry["name"] in self.with_gradient
        return entry["from"] == "model" and self.case.json["input_gradients"]

    def root_values(self):
        """The numbers of the values that the roots are, or that the loss is made from."""
        for_loss = {*self.case.compared_outputs(), *self.case.json["loss"].get("added", ())} if self.has_loss else set()
        needed = {"loss": lambda name: True, "boundary": self.with_gradient.__contains__, "model": for_loss.__contains__}
        return [e["value"] for e in self.form["outputs"] if e["value"] is not None and needed[e["to"]](e["name"])]

    def run(self, weights, inputs):
        """(Roots, Made) of these arguments, and of its own sources for all others."""
        weights = {name: self.hooks.on_parameter(self.stage, name, x) for name, x in weights.items()}
        if self.stage > 0:
            inputs = {name: self.hooks.on_boundary(self.stage, name, x) for name, x in inputs.items()}
        form, sources = self.form, self.sources
        used = lambda kind: [e for e in form[kind] if e["value"] is not None]
        of_input = lambda e: inputs if e["name"] in inputs else getattr(sources, e["from"])
        values = {e["value"]: of_input(e)[e["name"]] for e in used("inputs")}
        values |= {e["value"]: (sources.parameters | weights)[e["name"]] for e in used("parameters")}
        values |= {e["value"]: sources.buffers[e["name"]] for e in used("buffers")}
        values |= {e["value"]: self.case.tensors[e["tensor"]] for e in used("constants")}
        evaluate(form, values)
        made = [(e["to"], e["name"], values[e["value"]]) for e in form["outputs"] if e["value"] is not None]
        divisor = self.case.loss_divisor(self.step)
        losses = {name: quotient(x, divisor) for to, name, x in made if to == "loss"}
        outputs = {name: x for to, name, x in made if to != "loss"}
        if self.has_loss:
            target = self.case.target(self.step, self.microbatch)
            losses["loss"] = loss_of(self.case, self.step, outputs, target, sources.parameters | weights)
        boundaries = {name: x for to, name, x in made if to == "boundary" and name in self.with_gradient}
        buffers = {e["name"]: values[e["value"]] for e in form["buffer_updates"]}
        return Roots(boundaries, losses), Made(outputs, losses, buffers)

    def derivative(self, part):
        """(a function from the gradients of the roots to those of the part's arguments, Made)."""
        weights = self.weights if part in "BW" else {}
        inputs = self.inputs if part in "BI" else {}
        roots, pull, made = jax.vjp(lambda w, i: self.run(self.weights | w, self.inputs | i), weights, inputs, has_aux=True)
        return functools.partial(pulled, pull, roots), made

    def pull(self, part, gradients):
        """The gradients of the part's weights and inputs, {name: array} each, from those of the boundaries that the stage
        makes; those of its losses are the loss_weight."""
        weight = self.case.loss_weight(self.step, self.microbatch)
        pull = self.pulls.pop(part, None) or self.derivative(part)[0]
        return pull(Roots(gradients, dict.fromkeys(self.made.losses, weight)))


def pulled(pull, roots, gradients):
    return pull(jax.tree.map(lambda root, gradient: jnp.asarray(gradient, root.dtype), roots, gradients))
