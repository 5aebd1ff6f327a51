"""What the second opinion takes operators and views for, held against LibTorch on small whole numbers.

scripts/peer torch 2.15.0 -- -m unittest discover -s conformance/python/tests -p second_opinion_operators_test.py
"""

import os
import random
import sys
import unittest
from fractions import Fraction
from unittest import mock

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from second_opinion import values  # noqa: E402
from second_opinion.elements import Elements, Leaf  # noqa: E402
from second_opinion.errors import Unsupported  # noqa: E402
from second_opinion.fractions_of import fraction  # noqa: E402
from second_opinion.graph import Graph  # noqa: E402
from second_opinion.operators import OPERATORS  # noqa: E402
from second_opinion.term_file import Term  # noqa: E402

SEED = int(os.environ.get("PLUMBLINE_SEED", random.SystemRandom().randrange(2**32)))


def whole(*shape):
    """A place for whole numbers; 0, where abs and relu have an edge, is one of them."""
    return lambda generator: torch.randint(-3, 4, shape, generator=generator).double()


def positive(*shape):
    return lambda generator: torch.randint(1, 4, shape, generator=generator).double()


def index(most, *shape):
    return lambda generator: torch.randint(0, most, shape, generator=generator)


PAIR = dict(self=whole(3, 4), other=whole(2, 1, 4))
ROWS = dict(padding_idx=-1, scale_grad_by_freq=False)
SLICE = dict(grad_output=whole(2, 2, 3), input_sizes=[2, 5, 3], dim=1, start=1, end=5, step=2)
CALLS = {
    "aten::abs": [dict(self=whole(3, 4))],
    "aten::add.Tensor": [PAIR | dict(alpha=1), PAIR | dict(alpha=-2.5)],
    "aten::addmm": [
        dict(self=whole(4), mat1=whole(2, 3), mat2=whole(3, 4), beta=1, alpha=1),
        dict(self=whole(2, 4), mat1=whole(2, 3), mat2=whole(3, 4), beta=3, alpha=-2),
    ],
    "aten::bmm": [dict(self=whole(2, 3, 4), mat2=whole(2, 4, 5))],
    "aten::cat": [
        dict(tensors=[whole(2, 3), whole(2, 1), whole(2, 2)], dim=1), dict(tensors=[whole(2), whole(1)], dim=-1),
    ],
    "aten::div.Scalar": [dict(self=whole(3, 4), other=4), dict(self=whole(3, 4), other=0.3)],
    "aten::div.Tensor": [dict(self=whole(3, 4), other=positive(4))],
    "aten::embedding": [dict(weight=whole(5, 3), indices=index(5, 2, 4)) | ROWS | dict(sparse=False)],
    "aten::embedding_dense_backward": [
        dict(grad_output=whole(2, 4, 3), indices=index(5, 2, 4), num_weights=5) | ROWS,
        dict(grad_output=whole(8, 3), indices=index(3, 8), num_weights=3) | ROWS | dict(padding_idx=1),
    ],
    "aten::eq.Tensor": [dict(self=index(2, 3, 4), other=index(2, 4))],
    "aten::gelu": [dict(self=whole(3, 4), approximate=how) for how in ("none", "tanh")],
    "aten::gelu_backward": [
        dict(grad_output=whole(3, 4), self=whole(3, 4), approximate=how) for how in ("none", "tanh")
    ],
    "aten::mean": [dict(self=whole(3, 4), dtype=None)],
    "aten::mm": [dict(self=whole(2, 3), mat2=whole(3, 4))],
    "aten::mse_loss": [dict(self=whole(3, 4), target=whole(3, 4), reduction=how) for how in (0, 1, 2)],
    "aten::mse_loss_backward": [
        dict(grad_output=whole(*((3, 4) if how == 0 else ())), self=whole(3, 4), target=whole(3, 4), reduction=how)
        for how in (0, 1, 2)
    ],
    "aten::mul.Scalar": [dict(self=whole(3, 4), other=0.1)],
    "aten::mul.Tensor": [PAIR],
    "aten::neg": [dict(self=whole(3, 4))],
    "aten::relu": [dict(self=whole(3, 4))],
    "aten::select_backward": [
        dict(grad_output=whole(2, 3), input_sizes=[2, 4, 3], dim=1, index=2),
        dict(grad_output=whole(2, 4), input_sizes=[2, 4, 3], dim=-1, index=-1),
    ],
    "aten::sgn": [dict(self=whole(3, 4))],
    "aten::slice_backward": [SLICE, SLICE | dict(end=2**63 - 1), SLICE | dict(start=-4, dim=-2)],
    "aten::stack": [dict(tensors=[whole(2, 3), whole(2, 3)], dim=dim) for dim in (0, 2, -1)],
    "aten::sub.Tensor": [PAIR | dict(alpha=1), PAIR | dict(alpha=3)],
    "aten::sum": [dict(self=whole(3, 4), dtype=None)],
    "aten::sum.dim_IntList": [
        dict(self=whole(2, 3, 4), dim=[0, 2], keepdim=False, dtype=None),
        dict(self=whole(2, 3, 4), dim=[-2], keepdim=True, dtype=None),
        dict(self=whole(2, 3), dim=[], keepdim=False, dtype=None),
    ],
    "aten::threshold_backward": [dict(grad_output=whole(3, 4), self=whole(3, 4), threshold=0)],
}  # fmt: skip


def type_text(tensor):
    return f"{'i64' if tensor.dtype == torch.int64 else 'f64'}[{','.join(map(str, tensor.shape))}]"


def text_of(argument):
    if isinstance(argument, torch.Tensor):
        return "%"
    if isinstance(argument, list):
        return f"%{len(argument)}" if any(map(torch.is_tensor, argument)) else str(argument)
    is_number = isinstance(argument, (int, float)) and not isinstance(argument, bool)
    return f"{argument:.17g}" if is_number else str(argument)


def tensors_in(arguments):
    return [
        x
        for argument in arguments
        for x in (argument if isinstance(argument, list) else [argument])
        if torch.is_tensor(x)
    ]


def numbers_of(terms, leaves):
    """The exact numbers of the last term; `leaves` are tensors for the first terms."""
    elements = Elements()
    last = Graph(elements).tensors(terms)[-1].elements
    known = []
    for definition in elements.definitions:
        if isinstance(definition, Leaf):
            leaf = leaves[int(definition.name.split()[1])]
            known.append(Fraction(leaf.ravel()[definition.position].item()))
        else:
            known.append(values.value_of(definition, known.__getitem__))
    return [known[number] for number in last.ravel()], last.shape


def leaf_terms(leaves):
    return [Term("input", f"{number} {type_text(leaf)} digest", ()) for number, leaf in enumerate(leaves)]


def gelu(name, arguments):
    """In place of the values of an unknown function."""
    x = torch.tensor(float(arguments[0]), dtype=torch.float64, requires_grad=True)
    y = torch.nn.functional.gelu(x, approximate=name.split()[-1])
    return Fraction((torch.autograd.grad(y, x)[0] if name.startswith("derivative") else y).item())


def drawn(argument, generator):
    if isinstance(argument, list):
        return [drawn(item, generator) for item in argument]
    return argument(generator) if callable(argument) else argument


class Operators(unittest.TestCase):
    def test_every_operator_has_a_call(self):
        self.assertEqual(set(CALLS), set(OPERATORS))

    def test_values(self):
        for op, calls in CALLS.items():
            for number, call in enumerate(calls):
                generator = torch.Generator().manual_seed(SEED + number)
                arguments = {name: drawn(argument, generator) for name, argument in call.items()}
                with self.subTest(f"{op}, call {number}, PLUMBLINE_SEED={SEED}"):
                    self.check(op, arguments)

    def check(self, op, arguments):
        packet, _, overload = op.removeprefix("aten::").partition(".")
        wanted = getattr(getattr(torch.ops.aten, packet), overload or "default")(**arguments)
        leaves = tensors_in(arguments.values())
        call = " ".join(f"{name}={text_of(argument)}" for name, argument in arguments.items())
        term = Term(op, f"{type_text(wanted)} {call}", tuple(range(len(leaves))))
        with mock.patch.object(values, "of_unknown_function", gelu):
            found, shape = numbers_of([*leaf_terms(leaves), term], leaves)
        self.assertEqual(shape, tuple(wanted.shape))
        for f, w in zip(found, wanted.ravel().tolist(), strict=True):
            self.assertLessEqual(abs(float(f) - w), 1e-12 * max(1, abs(w)), (found, wanted))

    def test_an_unknown_operator_is_named(self):
        for op, text in ("aten::tanh", "operator aten::tanh"), ("aten::abs", "arguments self, out; expected self"):
            terms = [
                *leaf_terms([torch.zeros(2)]),
                Term(op, f"f64[2] self=%{' out=None' if op == 'aten::abs' else ''}", (0,)),
            ]
            with self.assertRaisesRegex(Unsupported, text):
                Graph(Elements()).tensors(terms)

    def test_operands_that_do_not_fit_are_told(self):
        terms = [
            Term("fill", "1 f64[]", ()),
            Term("aten::sum.dim_IntList", "f64[1] self=% dim=[0] keepdim=True dtype=None", (0,)),
        ]
        with self.assertRaisesRegex(Unsupported, r"aten::sum.dim_IntList .* operands of \(\)"):
            Graph(Elements()).tensors(terms)


class Views(unittest.TestCase):
    def test_loops_are_strides(self):
        generator = random.Random(SEED)
        for _ in range(50):
            sizes, strides = ([generator.randint(1, 3) for _ in range(3)] for _ in range(2))
            first = generator.randint(0, 3)
            last = first + sum((size - 1) * stride for size, stride in zip(sizes, strides))
            base = torch.arange(last + 1 + generator.randint(0, 2)).double()
            loops = "".join(f"{size}x{stride}," for size, stride in zip(sizes, strides))
            with self.subTest(f"{first}+{loops} PLUMBLINE_SEED={SEED}"):
                view = base.as_strided(sizes, strides, first)
                choice = f"from {first} to {last} of {base.numel()} {first}+{loops}"
                terms = [*leaf_terms([base]), Term("elements", f"{type_text(view)} {choice}", (0,))]
                self.assertEqual(numbers_of(terms, [base]), (view.ravel().tolist(), tuple(view.shape)))

    def test_a_write_replaces_what_its_loops_show(self):
        base, value = torch.arange(12.0).double().reshape(3, 4), torch.tensor([[50.0, 60.0, 70.0]]).double()
        terms = [*leaf_terms([base, value]), Term("write", f"{type_text(base)} 1+3x4,", (0, 1))]
        base_after = base.clone()
        base_after[:, 1] = value
        self.assertEqual(numbers_of(terms, [base, value])[0], base_after.ravel().tolist())

    def test_what_no_loops_describe_is_refused(self):
        with self.assertRaisesRegex(Unsupported, "no loops describe"):
            Graph(Elements()).tensors(
                [*leaf_terms([torch.zeros(4)]), Term("elements", "f64[2] from 0 to 3 of 4 ab12", (0,))]
            )


class Fractions(unittest.TestCase):
    def test_the_simplest_that_rounds_to_the_number(self):
        for text, wanted in (
            ("0.33333333333333331", Fraction(1, 3)),
            ("-0.29999999999999999", Fraction(-3, 10)),
            ("4", Fraction(4)),
        ):
            self.assertEqual(fraction(text), wanted)
        generator = random.Random(SEED)
        for _ in range(200):
            number = generator.uniform(-1, 1) * 10 ** generator.randint(-9, 9)
            self.assertEqual(float(fraction(f"{number:.17g}")), number, f"PLUMBLINE_SEED={SEED}")


if __name__ == "__main__":
    unittest.main()
