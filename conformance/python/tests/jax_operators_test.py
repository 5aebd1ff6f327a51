"""Every operator of the interpreter in JAX against NumPy in float64, and its derivative against finite differences.

    scripts/peer jax 0.10.2 -- -m unittest discover -s conformance/python/tests -p jax_operators_test.py
"""

import functools
import os
import re
import sys
import unittest

import numpy as np
from jax_references import REFERENCES

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "jax_interpreter")]
import adapter  # noqa: E402, F401 - sets JAX's flags before JAX is imported

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from numerics import DTYPES  # noqa: E402
from operators import OPERATORS  # noqa: E402

SEED = int(os.environ.get("PLUMBLINE_SEED", np.random.SeedSequence().entropy % 2**32))


def real(*shape):
    """A place for random numbers, none of them near 0, where abs and relu have an edge."""
    return lambda random: random.uniform(0.2, 1.5, shape) * random.choice([-1, 1], shape)


def pairs(*shape):
    """As complex numbers."""
    return lambda random: real(*shape)(random) + 1j * real(*shape)(random)


def positive(*shape):
    return lambda random: random.uniform(0.5, 1.5, shape)


def whole(most, *shape):
    return lambda random: random.integers(0, most, shape)


def flags(*shape):
    """Each row has at least one."""
    return lambda random: (random.integers(0, 2, shape) + np.eye(*shape)) > 0


POOL = dict(self=real(2, 3, 5, 6), kernel_size=[3, 2], stride=[2], padding=[1], ceil_mode=False, count_include_pad=True,
            divisor_override=None)  # fmt: skip
CONV = dict(input=real(2, 4, 5, 6), weight=real(6, 4, 3, 2), bias=real(6), stride=[1], padding=[0], dilation=[1], groups=1)
BACK = dict(input=real(2, 4, 3, 4), weight=real(4, 3, 3, 2), bias=real(3), stride=[1], padding=[0], output_padding=[0],
            groups=1, dilation=[1])  # fmt: skip
NORM = dict(input=real(4, 3, 2, 2), weight=real(3), bias=real(3), running_mean=real(3), running_var=positive(3),
            training=True, momentum=0.1, eps=1e-5)  # fmt: skip
LSTM = dict(input=real(2, 3, 4), hx=[real(2, 2, 5), real(2, 2, 5)], has_biases=True, num_layers=2, dropout=0.0, train=True,
            params=[real(20, 4), real(20, 5), real(20), real(20), real(20, 5), real(20, 5), real(20), real(20)],
            bidirectional=False, batch_first=True)  # fmt: skip
HEADS = dict(query=real(2, 4, 3, 6), key=real(2, 4, 5, 6), value=real(2, 4, 5, 3), attn_mask=None, is_causal=False,
             scale=None, enable_gqa=False)  # fmt: skip

# The arguments of calls.
CALLS = {
    "aten::_conj": [dict(self=pairs(3, 4))],
    "aten::abs": [dict(self=real(3, 4))],
    "aten::add.Tensor": [
        dict(self=real(3, 4), other=real(4), alpha=1), dict(self=real(3, 1), other=real(2, 1, 4), alpha=-2.5),
        dict(self=real(3), other=1.5, alpha=2), dict(self=real(3), other=whole(9, 3), alpha=1),
    ],
    "aten::avg_pool2d": [
        POOL, POOL | dict(ceil_mode=True), POOL | dict(ceil_mode=True, count_include_pad=False, stride=[3]),
        POOL | dict(count_include_pad=False), POOL | dict(divisor_override=5, stride=[]), POOL | dict(padding=[0], stride=[2, 1]),
        POOL | dict(kernel_size=[2], ceil_mode=True, stride=[3, 4]),
    ],
    "aten::batch_norm": [
        NORM, NORM | dict(weight=None, bias=None), NORM | dict(training=False), NORM | dict(input=real(4, 3)),
    ],
    "aten::bmm": [dict(self=real(2, 3, 4), mat2=real(2, 4, 5))],
    "aten::cat": [dict(tensors=[real(2, 3), real(2, 1), real(2, 2)], dim=1), dict(tensors=[real(2), real(1)], dim=0)],
    "aten::conv2d": [
        CONV, CONV | dict(bias=None, stride=[2, 1], padding=[1, 2]), CONV | dict(dilation=[2], padding=[2]),
        CONV | dict(groups=2, weight=real(6, 2, 3, 2)),
    ],
    "aten::conv_transpose2d.input": [
        BACK, BACK | dict(bias=None, stride=[2, 3], padding=[1], output_padding=[1, 2]), BACK | dict(dilation=[2, 1]),
        BACK | dict(groups=2, bias=real(6), stride=[2]),
    ],
    "aten::detach": [dict(self=real(3))],
    "aten::embedding": [dict(weight=real(5, 3), indices=whole(5, 2, 4))],
    "aten::eq.Tensor": [dict(self=whole(3, 4, 4), other=whole(3, 4)), dict(self=whole(3, 4), other=1)],
    "aten::expand": [dict(self=real(3, 1), size=[2, 3, 4])],
    "aten::full": [dict(size=[2, 3], fill_value=1.5, dtype="F64"), dict(size=[], fill_value={"float": "-inf"}, dtype="F64")],
    "aten::gelu": [dict(self=real(3, 4), approximate="none"), dict(self=real(3, 4), approximate="tanh")],
    "aten::layer_norm": [
        dict(input=real(2, 3, 4), normalized_shape=[3, 4], weight=real(3, 4), bias=real(3, 4), eps=1e-5),
        dict(input=real(3, 4), normalized_shape=[4], weight=None, bias=None, eps=1e-3),
    ],
    "aten::linear": [
        dict(input=real(2, 3, 4), weight=real(5, 4), bias=real(5)), dict(input=real(4), weight=real(5, 4), bias=None),
    ],
    "aten::lstm.input": [
        LSTM, LSTM | dict(has_biases=False, params=[real(20, 4), real(20, 5), real(20, 5), real(20, 5)], batch_first=False,
                          input=real(3, 2, 4)),
    ],
    "aten::mean.dim": [
        dict(self=real(2, 3, 4), dim=[0, 2], keepdim=False), dict(self=real(2, 3), dim=[1], keepdim=True),
        dict(self=real(2, 3), dim=[], keepdim=False),
    ],
    "aten::mse_loss": [dict(self=real(3, 4), target=real(3, 4), reduction=reduction) for reduction in (0, 1, 2)],
    "aten::mul.Tensor": [
        dict(self=real(3, 4), other=real(2, 1, 4)), dict(self=real(3), other=0.3), dict(self=real(3), other=flags(3, 1)),
    ],
    "aten::permute": [dict(self=real(2, 3, 4), dims=[2, 0, 1])],
    "aten::relu": [dict(self=real(3, 4))],
    "aten::remainder.Tensor": [dict(self=real(3, 4), other=positive(4)), dict(self=real(3, 4), other=0.7)],
    "aten::reshape": [dict(self=real(2, 3, 4), shape=[4, 6])],
    "aten::scaled_dot_product_attention": [
        HEADS, HEADS | dict(scale=0.3, attn_mask=real(3, 5)), HEADS | dict(attn_mask=flags(3, 5)), HEADS | dict(is_causal=True),
        HEADS | dict(enable_gqa=True, key=real(2, 2, 5, 6), value=real(2, 2, 5, 3)),
    ],
    "aten::select.int": [dict(self=real(2, 3, 4), dim=1, index=2)],
    "aten::slice.Tensor": [dict(self=real(7, 3), dim=0, start=1, end=6, step=2), dict(self=real(2, 3), dim=1, start=2, end=2, step=1)],
    "aten::softmax.int": [dict(self=real(2, 3, 4), dim=1)],
    "aten::split_with_sizes": [dict(self=real(2, 6), split_sizes=[1, 3, 2], dim=1)],
    "aten::stack": [dict(tensors=[real(2, 3), real(2, 3)], dim=dim) for dim in (0, 2)],
    "aten::sum.dim_IntList": [
        dict(self=real(2, 3, 4), dim=[0, 2], keepdim=False), dict(self=real(2, 3), dim=[1], keepdim=True),
        dict(self=real(2, 3), dim=[], keepdim=False),
    ],
    "aten::tanh": [dict(self=real(3, 4))],
    "aten::to.dtype": [dict(self=real(3, 4), dtype="F64")],
    "aten::view_as_complex": [dict(self=real(3, 4, 2))],
    "aten::view_as_real": [dict(self=pairs(3, 4))],
}  # fmt: skip
# No gradient flows through them, or not through these results; test_derivatives_of_complex_numbers has those of complex ones.
WITHOUT_GRADIENT = {
    "aten::detach", "aten::eq.Tensor", "aten::full", "aten::_conj", "aten::view_as_complex", "aten::view_as_real",
}  # fmt: skip
DTYPE = {"aten::eq.Tensor": "BOOL", "aten::_conj": "C128", "aten::view_as_complex": "C128"}  # of others F64
STATISTICS = ("running_mean", "running_var")


def drawn(argument, random):
    if isinstance(argument, list):
        return [drawn(item, random) for item in argument]
    if isinstance(argument, dict):
        return float(argument["float"])
    return argument(random) if callable(argument) else argument


def results_of(made):
    return [np.asarray(one) for one in (made if isinstance(made, tuple) else (made,))]


def reals(arguments):
    """[(place in the arguments, array)] of those that have a gradient."""
    found = []
    for name, argument in arguments.items():
        for number, one in enumerate(argument) if isinstance(argument, list) else [(None, argument)]:
            if isinstance(one, np.ndarray) and one.dtype == np.float64 and name not in STATISTICS:
                found.append(((name, number), one))
    return found


def replaced(arguments, places, arrays):
    changed = {name: list(a) if isinstance(a, list) else a for name, a in arguments.items()}
    for (name, number), array in zip(places, arrays):
        if number is None:
            changed[name] = array
        else:
            changed[name][number] = array
    return changed


def each_call():
    """(operator, arguments, words that name the call)"""
    for op, calls in CALLS.items():
        for number, call in enumerate(calls):
            random = np.random.default_rng([SEED, number])
            arguments = {name: drawn(argument, random) for name, argument in call.items()}
            yield op, arguments, f"{op}, call {number}, PLUMBLINE_SEED={SEED}"


class Operators(unittest.TestCase):
    def test_the_opset_is_covered(self):
        with open(os.path.join(HERE, "..", "..", "INTERPRETING.md"), encoding="utf-8") as page:
            opset = set(re.findall(r"^\| `((?:aten|plumbline)::[^`]*)` \|", page.read(), re.M))
        self.assertEqual(set(OPERATORS), opset)
        for of in REFERENCES, CALLS:
            self.assertEqual({*of, "plumbline::gradient_hook"}, opset)

    def test_values(self):
        """No element has more than 1000 roundings, nor terms of more than about the largest element."""
        for op, arguments, words in each_call():
            with self.subTest(words):
                dtype = DTYPE.get(op, "F64")
                found, wanted = results_of(OPERATORS[op](dtype, **arguments)), results_of(REFERENCES[op](**arguments))
                self.assertEqual([x.shape for x in found], [x.shape for x in wanted])
                for f, w in zip(found, wanted):
                    self.assertEqual(f.dtype, DTYPES[dtype])
                    if not np.isfinite(w).all() or dtype == "BOOL":
                        np.testing.assert_array_equal(f, w)
                        continue
                    allowed = 1000 * 2.0**-53 * max(1, np.abs(w).max(initial=0))
                    self.assertTrue((np.abs(f - w) <= allowed).all(), f"{f} for {w}")

    def test_derivatives_of_complex_numbers(self):
        """The imaginary part changes its sign."""
        as_complex, conj, as_real = (OPERATORS[f"aten::{name}"] for name in ("view_as_complex", "_conj", "view_as_real"))
        weights = np.arange(1.0, 9.0).reshape(4, 2)
        turned = lambda x: as_real("F64", self=conj("C128", self=as_complex("C128", self=x)))
        gradient = jax.grad(lambda x: jnp.sum(weights * turned(x)))(jnp.ones((4, 2)))
        self.assertEqual(gradient.tolist(), (weights * [1, -1]).tolist())

    def test_derivatives(self):
        """Central differences of the reference along a random direction are off by h^2 / 6 times a third derivative, and by
        1e-16 / h times the roundings: together below 1e-7, where an error in a derivative is not."""
        h = 1e-5
        for op, arguments, words in each_call():
            if op in WITHOUT_GRADIENT:
                continue
            with self.subTest(words):
                places, at = zip(*reals(arguments))
                random = np.random.default_rng([SEED, 1])
                outputs = results_of(REFERENCES[op](**arguments))[: 1 if op == "aten::batch_norm" else None]
                weights = [random.uniform(-1, 1, x.shape) for x in outputs]

                def weighted(function, arrays):
                    made = function(**replaced(arguments, places, arrays))
                    return sum((w * x).sum() for w, x in zip(weights, made if isinstance(made, tuple) else (made,)))

                operator = functools.partial(OPERATORS[op], "F64")
                gradients = jax.grad(functools.partial(weighted, operator))(list(map(jnp.asarray, at)))
                for place, (x, gradient) in enumerate(zip(at, gradients)):
                    direction = random.uniform(-1, 1, x.shape)
                    ends = [[*at[:place], x + s * direction, *at[place + 1 :]] for s in (h, -h)]
                    there, back = (weighted(REFERENCES[op], end) for end in ends)
                    expected, found = (there - back) / (2 * h), float((np.asarray(gradient) * direction).sum())
                    self.assertLess(abs(found - expected), 1e-7 * max(1, abs(expected)), places[place])

    def test_gradients_that_have_to_be_zero(self):
        x = np.array([-1.0, 0.0, 2.0])
        slope = lambda op, **more: jax.grad(lambda x: jnp.sum(OPERATORS[op]("F64", self=x, **more)))(jnp.asarray(x)).tolist()
        self.assertEqual(slope("aten::abs"), [-1, 0, 1])
        self.assertEqual(slope("aten::relu"), [0, 0, 1])
        self.assertEqual(slope("aten::detach"), [0, 0, 0])

    def test_a_hook_on_a_value(self):
        """It changes the sum over all uses, once, and not the value."""
        hook = functools.partial(OPERATORS["plumbline::gradient_hook"], "F64")
        x, weights = jnp.asarray([1.0, 2.0, 3.0, 4.0]), jnp.asarray([1.0, -3.0, 5.0, -0.5])
        for factor, limit, expected in ((2.0, float("inf"), [8, -24, 40, -4]), (0.5, 3.0, [2, -3, 3, -1])):

            def used_twice(x):
                value = hook(self=x * 1.0, factor=factor, limit=limit)
                return jnp.sum(weights * value) + jnp.sum(3 * weights * value)

            self.assertEqual(float(used_twice(x)), float(4 * (weights * x).sum()))
            self.assertEqual(jax.grad(used_twice)(x).tolist(), expected)

    def test_sums_of_sixteen_bits_are_rounded_once(self):
        """Of so many ones a sum with a rounding at each term would stop at 256, or at 2048."""
        for name, many in ("BF16", 4096), ("F16", 8192):
            ones, one = jnp.ones(many, DTYPES[name]), jnp.ones(1, DTYPES[name])
            with self.subTest(name):
                total = functools.partial(OPERATORS["aten::sum.dim_IntList"], name, dim=[0], keepdim=False)
                self.assertEqual(float(total(self=ones)), many)
                add = functools.partial(OPERATORS["aten::add.Tensor"], name, other=ones, alpha=1)
                expand = functools.partial(OPERATORS["aten::expand"], name, size=[many])
                rows = functools.partial(OPERATORS["aten::embedding"], name, indices=np.zeros(many, np.int64))
                for operator in add, expand:
                    self.assertEqual(float(jax.vjp(lambda x: operator(self=x), one)[1](ones)[0][0]), many)
                gradient = jax.vjp(lambda x: rows(weight=x), one[:, None])[1](ones[:, None])[0]
                self.assertEqual(float(gradient[0, 0]), many)


if __name__ == "__main__":
    unittest.main()
