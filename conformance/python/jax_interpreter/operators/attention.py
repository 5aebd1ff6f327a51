"""Scaled dot-product attention."""

import math

import jax
import jax.numpy as jnp
from numerics import rounded_once


@rounded_once
def attention(query, key, value, attn_mask, is_causal, scale, enable_gqa):
    if enable_gqa:  # each head of keys and values serves several heads of queries
        key, value = (jnp.repeat(x, query.shape[-3] // x.shape[-3], axis=-3) for x in (key, value))
    scores = jnp.matmul(query, key.swapaxes(-1, -2)) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        scores = jnp.where(jnp.tri(*scores.shape[-2:], dtype=bool), scores, -jnp.inf)
    if attn_mask is not None:
        scores = jnp.where(attn_mask, scores, -jnp.inf) if attn_mask.dtype == bool else scores + attn_mask
    return jnp.matmul(jax.nn.softmax(scores, axis=-1), value)


OPERATORS = {"aten::scaled_dot_product_attention": attention}
