"""Recurrent layers."""

import jax
import jax.numpy as jnp
from numerics import DTYPES, cast, widened


def lstm(
    dtype, input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first
):
    x = widened(input)
    x, states = x.swapaxes(0, 1) if batch_first else x, [widened(state) for state in hx]
    of_layer = len(params) // num_layers
    last = []
    for layer in range(num_layers):
        own = [widened(p) for p in params[layer * of_layer : (layer + 1) * of_layer]]
        biases = own[2] + own[3] if has_biases else 0
        h, c = (state[layer] for state in states)
        made = []
        for moment in x:
            gates = jnp.matmul(moment, own[0].T) + jnp.matmul(h, own[1].T) + biases
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            made.append(h)
        x = jnp.stack(made)
        last.append((h, c))
    y = x.swapaxes(0, 1) if batch_first else x
    return tuple(cast(result, DTYPES[dtype]) for result in (y, *(jnp.stack(of_all) for of_all in zip(*last))))


OPERATORS = {"aten::lstm.input": lstm}
