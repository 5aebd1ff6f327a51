"""Element by element."""

import jax
import jax.numpy as jnp
from numerics import DTYPES, rounded_once, of_result


@of_result
def add(self, other, alpha):
    return self + alpha * other


@of_result
def mul(self, other):
    return self * other


@of_result
def remainder(self, other):
    return jnp.remainder(self, other)


def equal(dtype, self, other):
    return jnp.equal(self, other)


@rounded_once
def absolute(self):
    return self * jax.lax.stop_gradient(jnp.sign(self))  # its derivative at 0 is 0; that of jnp.abs is 1


@rounded_once
def relu(self):
    return jax.nn.relu(self)  # its derivative at 0 is 0; that of jnp.maximum is 1/2


@rounded_once
def tanh(self):
    return jnp.tanh(self)


@rounded_once
def gelu(self, approximate):
    return jax.nn.gelu(self, approximate=approximate == "tanh")


def conj(dtype, self):
    return jnp.conj(self)


def view_as_complex(dtype, self):
    return jax.lax.complex(self[..., 0], self[..., 1])


def view_as_real(dtype, self):
    return jnp.stack([jnp.real(self), jnp.imag(self)], axis=-1)


def detach(dtype, self):
    return jax.lax.stop_gradient(self)


def to_dtype(result, self, dtype):
    return jnp.asarray(self).astype(DTYPES[result])


OPERATORS = {
    "aten::_conj": conj,
    "aten::abs": absolute,
    "aten::add.Tensor": add,
    "aten::detach": detach,
    "aten::eq.Tensor": equal,
    "aten::gelu": gelu,
    "aten::mul.Tensor": mul,
    "aten::relu": relu,
    "aten::remainder.Tensor": remainder,
    "aten::tanh": tanh,
    "aten::to.dtype": to_dtype,
    "aten::view_as_complex": view_as_complex,
    "aten::view_as_real": view_as_real,
}
