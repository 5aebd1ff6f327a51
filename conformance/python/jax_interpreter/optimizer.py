"""Optimizer steps, in the formulas of INTERPRETING.md. Arrays of 16 bits are updated at full width and rounded once."""

import math

import jax.numpy as jnp
import numpy as np
from numerics import widened


def all_finite(gradients):
    return all(bool(jnp.isfinite(g).all()) for g in gradients.values())


def multiplied(gradients, factor):
    return {name: (widened(g) * factor).astype(g.dtype) for name, g in gradients.items()}


def norm_of(gradients, kind):
    """The norm over all elements, in float64; `kind` is 2 or "inf"."""
    parts = [gradients[name].astype(np.float64) for name in sorted(gradients)]
    if kind == 2:
        return math.sqrt(sum(float(jnp.sum(jnp.square(part))) for part in parts))
    largest = [float(jnp.max(jnp.abs(part))) for part in parts if part.size]
    return math.nan if any(map(math.isnan, largest)) else max(largest, default=0.0)


def clip_factor(norm, clip):
    """What multiplies every gradient; None: nothing does."""
    factor = clip["max"] / (norm + clip["epsilon"])
    return factor if factor < 1 else None


def updated(parameter, gradient, state, options):
    """(the new parameter, its new state); `state` is {} before the first update."""
    p, g = widened(parameter), widened(gradient)
    old = {entry: x if entry == "step" else widened(x) for entry, x in state.items()}
    p, new = {"sgd": sgd, "adamw": adamw}[options["kind"]](p, g, old, options)
    narrow = lambda entry, x: np.int64(x) if entry == "step" else x.astype(parameter.dtype)
    return p.astype(parameter.dtype), {entry: narrow(entry, x) for entry, x in new.items()}


def sgd(p, g, state, options):
    g = g + options.get("weight_decay", 0) * p
    if options["momentum"]:
        g = options["momentum"] * state["momentum_buffer"] + g if state else g
        state = {"momentum_buffer": g}
    return p - options["learning_rate"] * g, state


def adamw(p, g, state, options):
    beta1, beta2, rate = options["beta1"], options["beta2"], options["learning_rate"]
    t = int(state.get("step", 0)) + 1
    m = beta1 * state.get("exp_avg", 0) + (1 - beta1) * g
    v = beta2 * state.get("exp_avg_sq", 0) + (1 - beta2) * g * g
    p = p * (1 - rate * options["weight_decay"])
    p = p - rate / (1 - beta1**t) * m / (jnp.sqrt(v) / math.sqrt(1 - beta2**t) + options["epsilon"])
    return p, {"exp_avg": m, "exp_avg_sq": v, "step": t}

