"""The loss of a micro-batch."""

import functools

import jax
import jax.numpy as jnp
from numerics import quotient, widened


def loss_of(case, step, outputs, target, parameters):
    """`outputs`: {name: value} of the model; `parameters`: {name: value}, with those of the loss. The sum of its losses, with
    those that are added to it, divided."""
    compared = zip(case.compared_outputs(), case.flat_targets(target), strict=True)
    own = [parameters[name] for name in case.loss_parameters()]
    adjusted = lambda y: (widened(y) * widened(own[0]) + widened(own[1])).astype(y.dtype) if own else y
    losses = (own_loss(case.json["loss"], adjusted(outputs[name]), of) for name, of in compared)
    total = functools.reduce(jnp.add, losses)
    for name in case.json["loss"].get("added", ()):
        if name in outputs:
            total = total + outputs[name]
    return quotient(total, case.loss_divisor(step))


def own_loss(loss, y, target):
    return KINDS[loss["kind"]](loss, widened(y), widened(target)).astype(y.dtype)


def reduced(loss, terms):
    return terms.mean() if loss["reduction"] == "mean" else terms.sum()


def cross_entropy(loss, y, target):
    """Positions of the ignored class have no term, and no part in the mean."""
    classes = y.shape[-1]
    y, target = y.reshape(-1, classes), target.reshape(-1)
    counts = jnp.ones(target.shape, bool) if loss["ignored_target"] is None else target != loss["ignored_target"]
    at = jnp.where(counts, target, 0)
    weights = jnp.ones(classes, y.dtype) if "class_weights" not in loss else jnp.asarray(loss["class_weights"], y.dtype)
    weights = jnp.where(counts, weights[at], 0)
    terms = -jnp.take_along_axis(jax.nn.log_softmax(y), at[:, None], 1)[:, 0] * weights
    return terms.sum() / (weights.sum() if loss["reduction"] == "mean" else 1)


KINDS = {
    "sum": lambda loss, y, target: reduced(loss, y),
    "mse": lambda loss, y, target: reduced(loss, jnp.square(y - target)),
    "cross-entropy": cross_entropy,
    "output": lambda loss, y, target: y,
}
