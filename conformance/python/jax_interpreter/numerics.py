"""Element types, and where results are rounded: an operator computes in F32 from 16 bits, so that a result is rounded once, and
a sum of them not at every term."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from plumbline_case.tensors import DTYPES as STORED

DTYPES = {name: jnp.dtype(jnp.bfloat16) if name == "BF16" else dtype for name, dtype in STORED.items()}
DTYPES |= {"C64": np.dtype(np.complex64), "C128": np.dtype(np.complex128)}
NARROW = (DTYPES["F16"], DTYPES["BF16"])


def is_differentiable(name):
    """Whether gradients flow through values of the element type of this name."""
    return name in ("F64", "F32", "F16", "BF16", "C64", "C128")


def cast(argument, dtype):
    """Arrays, and those in lists; anything else as it is."""
    if isinstance(argument, list):
        return [cast(item, dtype) for item in argument]
    return jnp.asarray(argument).astype(dtype) if isinstance(argument, (jax.Array, np.ndarray)) else argument


def widened(argument):
    """16-bit arrays, and those in lists, as F32; anything else as it is."""
    if isinstance(argument, list):
        return [widened(item) for item in argument]
    return cast(argument, np.float32) if getattr(argument, "dtype", None) in NARROW else argument


def quotient(x, divisor):
    """Without a rounding of the divisor to the 16 bits of x."""
    return x if divisor == 1 else (widened(x) / divisor).astype(x.dtype)


def of_result(function):
    """An operator that converts its arguments to the element type of its result first."""

    @functools.wraps(function)
    def operator(dtype, **arguments):
        result = DTYPES[dtype]
        wide = np.dtype(np.float32) if result in NARROW else result
        return cast(function(**{name: cast(argument, wide) for name, argument in arguments.items()}), result)

    return operator


def rounded_once(function):
    """An operator that takes its arguments as they are."""

    @functools.wraps(function)
    def operator(dtype, **arguments):
        return cast(function(**{name: widened(argument) for name, argument in arguments.items()}), DTYPES[dtype])

    return operator
