"""Normalization, and softmax."""

import jax
import jax.numpy as jnp
from numerics import DTYPES, cast, rounded_once, widened


def normalized(x, mean, var, eps):
    return (x - mean) * jax.lax.rsqrt(var + eps)


@rounded_once
def layer_norm(input, normalized_shape, weight, bias, eps):
    over = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    mean = jnp.mean(input, over, keepdims=True)
    result = normalized(input, mean, jnp.mean(jnp.square(input - mean), over, keepdims=True), eps)
    result = result if weight is None else result * weight
    return result if bias is None else result + bias


def batch_norm(dtype, input, weight, bias, running_mean, running_var, training, momentum, eps):
    """In training the new statistics are two more results, through which no gradient flows."""
    x = widened(input)
    over = tuple(d for d in range(x.ndim) if d != 1)
    channels = lambda y: jnp.expand_dims(widened(y), over)
    mean, var = (jnp.mean(x, over), jnp.var(x, over)) if training else (running_mean, running_var)
    result = normalized(x, channels(mean), channels(var), eps)
    result = result if weight is None else result * channels(weight)
    result = cast(result if bias is None else result + channels(bias), DTYPES[dtype])
    if not training:
        return result
    count = x.size // x.shape[1]
    moved = lambda old, new: cast((1 - momentum) * widened(old) + momentum * jax.lax.stop_gradient(new), old.dtype)
    return result, moved(running_mean, mean), moved(running_var, var * (count / (count - 1)))


@rounded_once
def softmax(self, dim):
    return jax.nn.softmax(self, axis=dim)


OPERATORS = {"aten::batch_norm": batch_norm, "aten::layer_norm": layer_norm, "aten::softmax.int": softmax}
