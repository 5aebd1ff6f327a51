"""Users' hooks on values: the one operator whose derivative is written here, since it is the hook."""

import jax
import jax.numpy as jnp


def gradient_hook(dtype, self, factor, limit):
    @jax.custom_vjp
    def identity(x):
        return x

    identity.defvjp(lambda x: (x, None), lambda _, gradient: (jnp.clip(gradient * factor, -limit, limit),))
    return identity(self)


OPERATORS = {"plumbline::gradient_hook": gradient_hook}
