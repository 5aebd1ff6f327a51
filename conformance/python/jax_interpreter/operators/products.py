"""Products of matrices."""

import jax.numpy as jnp
from numerics import rounded_once


@rounded_once
def linear(input, weight, bias):
    product = jnp.matmul(input, weight.T)
    return product if bias is None else product + bias


@rounded_once
def bmm(self, mat2):
    return jnp.matmul(self, mat2)


OPERATORS = {"aten::bmm": bmm, "aten::linear": linear}
