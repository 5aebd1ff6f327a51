"""Sums and means."""

import jax.numpy as jnp
from numerics import rounded_once, of_result


@of_result
def total(self, dim, keepdim):
    return jnp.sum(self, tuple(dim) or None, keepdims=keepdim)


@of_result
def mean(self, dim, keepdim):
    return jnp.mean(self, tuple(dim) or None, keepdims=keepdim)


@rounded_once
def mse_loss(self, target, reduction):
    squares = jnp.square(self - target)
    return (lambda x: x, jnp.mean, jnp.sum)[reduction](squares)


OPERATORS = {
    "aten::mean.dim": mean,
    "aten::mse_loss": mse_loss,
    "aten::sum.dim_IntList": total,
}
