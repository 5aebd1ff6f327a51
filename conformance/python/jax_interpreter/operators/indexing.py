"""Parts of a tensor."""

import itertools

import jax
import jax.numpy as jnp
from numerics import rounded_once


@rounded_once  # a row that many positions use gets a sum of their gradients
def embedding(weight, indices):
    return jnp.take(weight, indices, axis=0)


def select(dtype, self, dim, index):
    return jax.lax.index_in_dim(self, index, dim, keepdims=False)


def part(dtype, self, dim, start, end, step):
    return jax.lax.slice_in_dim(self, start, end, step, dim)


def split(dtype, self, split_sizes, dim):
    ends = list(itertools.accumulate(split_sizes))
    return tuple(jax.lax.slice_in_dim(self, end - size, end, axis=dim) for size, end in zip(split_sizes, ends))


OPERATORS = {
    "aten::embedding": embedding,
    "aten::select.int": select,
    "aten::slice.Tensor": part,
    "aten::split_with_sizes": split,
}
