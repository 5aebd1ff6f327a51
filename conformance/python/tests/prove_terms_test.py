"""The rules of terms of plumbline_case.prove, held against numbers. In the environment of scripts/peer:

    scripts/tests/in_peer.sh -m unittest discover -s conformance/python/tests -p 'prove_*_test.py'
"""

import math
import os
import random
import sys
import unittest
from collections import Counter

import numpy as np
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from plumbline_case.prove.memory import own_bytes, stored_bytes  # noqa: E402
from plumbline_case.prove.recorder import Recorder  # noqa: E402
from plumbline_case.prove.sums import NormalForms, factor_between  # noqa: E402
from plumbline_case.prove.terms import Terms  # noqa: E402
from whole_numbers import drawn  # noqa: E402

torch.set_num_threads(1)


class Elements(unittest.TestCase):
    """Whatever views and copies lie between: a value whose root is a leaf shows the numbers of the tensor."""

    def check(self, recorder, leaves, tensor, message):
        value = recorder.memory.read(tensor)
        if value.number:
            shown = torch.full(value.sizes, float(value.number))
        else:
            self.assertIn(value.root, leaves, message)
            flat = leaves[value.root].reshape(-1)
            shown = (flat if value.picks is None else flat[torch.from_numpy(value.picks)]).reshape(value.sizes)
        self.assertTrue(torch.equal(shown, tensor), message)

    def leaf(self, recorder, leaves, name, *sizes):
        """Numbers that no other element of a leaf has."""
        tensor = torch.arange(float(math.prod(sizes))).reshape(sizes) + 1000 * (1 + len(leaves))
        recorder.name_leaf(tensor, "leaf", name)
        leaves[recorder.memory.read(tensor).root] = tensor.clone()
        return tensor

    def test_chains_of_views(self):
        for seed in range(200):
            generator, recorder, leaves = random.Random(seed), Recorder(Terms()), {}
            x = self.leaf(recorder, leaves, "x", 2, 3, 4)
            with recorder:
                for _ in range(generator.randint(1, 6)):
                    x = self.viewed(generator, x)
            self.check(recorder, leaves, x, f"seed {seed}")

    @staticmethod
    def viewed(generator, x):
        dim = generator.randrange(x.dim()) if x.dim() else 0
        ways = [lambda: x.clone(), lambda: x.contiguous(), lambda: x.reshape(-1), lambda: x.detach(), lambda: x[None]]
        if x.dim() > 1:
            ways += [lambda: x.transpose(dim, 0), lambda: x.permute(*reversed(range(x.dim())))]
        if x.dim() and x.shape[dim] > 1:
            ways += [lambda: x.narrow(dim, 1, x.shape[dim] - 1), lambda: x.select(dim, 1), lambda: torch.chunk(x, 2, dim)[1]]
        if x.dim() and x.numel() < 200:
            ways += [lambda: x.unsqueeze(dim).expand(*x.shape[:dim], 2, *x.shape[dim:])]
        return generator.choice(ways)()

    def test_pieces_that_were_put_together(self):
        """Rows of a cat, and of the sum of the backwards of its slices, are those of one of the parts."""
        for seed in range(100):
            generator, recorder, leaves = random.Random(seed), Recorder(Terms()), {}
            dim, rows = generator.randrange(2), [generator.randint(1, 3) for _ in range(3)]
            parts = [self.leaf(recorder, leaves, f"part {i}", *((n, 2) if dim == 0 else (2, n))) for i, n in enumerate(rows)]
            whole = torch.zeros((sum(rows), 2) if dim == 0 else (2, sum(rows)), requires_grad=True)
            with recorder:
                made = torch.cat(parts, dim)
                for i, piece in enumerate(torch.split(made, rows, dim)):
                    self.check(recorder, leaves, piece, f"seed {seed}: cat, part {i}")
                torch.autograd.backward([slice_ for slice_ in self.slices(whole, rows, dim)], parts)
                for i, piece in enumerate(torch.split(whole.grad, rows, dim)):
                    self.check(recorder, leaves, piece, f"seed {seed}: slices, part {i}")
                one = torch.stack([parts[0], parts[0] * 0 + parts[0]], dim).select(dim, 0)
            self.check(recorder, leaves, one, f"seed {seed}: stack")

    @staticmethod
    def slices(whole, rows, dim):
        ends = np.cumsum(rows)
        return [
            whole.narrow(dim, int(end - n), n) if n > 1 else whole.select(dim, int(end) - 1).unsqueeze(dim)
            for end, n in zip(ends, rows)
        ]

    def test_writes_through_views(self):
        recorder, leaves = Recorder(Terms()), {}
        x, y = self.leaf(recorder, leaves, "x", 4), self.leaf(recorder, leaves, "y", 4)
        with recorder:
            base = x.clone()
            base[1:3].copy_(y[:2])
            self.assertNotIn(recorder.memory.read(base).root, leaves)
            base[:].copy_(y)
        self.check(recorder, leaves, base, "a write to all elements is the value")

    def test_memory_between_the_elements(self):
        """Its contents are undefined."""
        recorder, leaves = Recorder(Terms()), {}
        x = self.leaf(recorder, leaves, "x", 3)
        with recorder:
            apart = torch.empty_strided((3,), (2,))
            apart.copy_(x)
            self.check(recorder, leaves, apart[1:], "elements apart")
            between = torch.as_strided(apart, (3,), (1,))
        self.assertEqual(recorder.terms[recorder.memory.read(between).root].op, "constant")

    def test_memory_of_2_gib(self):
        """Its last byte is the only one that is touched."""
        large = torch.empty((1 << 31) + 1, dtype=torch.uint8)
        large[-1] = 7
        for data in (own_bytes(large), stored_bytes(large)):
            self.assertEqual((len(data), data[-1]), ((1 << 31) + 1, b"\x07"))
        self.assertEqual((own_bytes(large[:0]), stored_bytes(torch.empty(0))), (b"", b""))

    def test_memory_that_no_operator_wrote(self):
        recorder, leaves = Recorder(Terms()), {}
        x = self.leaf(recorder, leaves, "x", 4)
        x.fill_(7)  # outside of the recorder
        value = recorder.memory.read(x)
        self.assertEqual(recorder.terms[value.root].op, "constant")
        self.assertEqual(recorder.memory.unseen_writes, 1)


class Programs(unittest.TestCase):
    """Random programs and their variants: those with equal terms give equal numbers for other inputs."""

    def test_equal_terms_are_equal_for_other_inputs(self):
        """And so are equal sums; multiples are multiples."""
        seen = Counter()
        for seed in range(400):
            generator = random.Random(seed)
            program = [self.line(generator, i) for i in range(generator.randint(2, 7))]
            variant = self.varied(generator, program)
            recorder = Recorder(Terms())
            one, other = (self.term(recorder, p) for p in (program, variant))
            factor = factor_between(NormalForms(recorder.terms), one, other)
            seen["term" if one == other else "none" if factor is None else "sum" if factor == 1 else "multiple"] += 1
            for more in range(3):
                numbers = [self.run_program(p, self.inputs(random.Random(f"{seed}.{more}"))) for p in (program, variant)]
                said = f"seed {seed}: {program} and {variant}"
                if one == other:
                    self.assertTrue(torch.equal(*numbers), said)
                if factor is not None and max(float(x.abs().max()) for x in numbers) < 2**40:
                    self.assertTrue(torch.equal(numbers[0] * factor.numerator, numbers[1] * factor.denominator), said)
        # The generator makes enough of each, so that none of these is empty.
        self.assertGreater(min(seen[kind] for kind in ("term", "sum", "multiple", "none")), 8, seen)

    @staticmethod
    def inputs(generator):
        return [drawn(generator, 3, 3).double() for _ in range(3)]

    @staticmethod
    def line(generator, number):
        """(operator, operands, constant); values 0 to 2 are inputs."""
        names = ["add", "add", "add", "sub", "mul", "mm", "t", "clone", "add_", "mul_", "rows", "relu", "zeros", "half",
                 "plus", "ones", "sum", "left", "right", "left", "wide"]  # fmt: skip
        operands = tuple(generator.randrange(number, number + 3) for _ in range(2))  # the last ones: most are used
        return generator.choice(names), operands, generator.choice([1, 1, 2, 3])

    def varied(self, generator, program):
        program, at = list(program), generator.randrange(len(program))
        name, (a, b), constant = program[at]
        kind = generator.choice(["operand", "constant", "commute", "name", "nothing"])
        if kind == "operand":
            program[at] = name, (generator.randrange(at, at + 3), b), constant
        elif kind == "constant":
            program[at] = name, (a, b), generator.choice([1, 2, 3])
        elif kind == "commute":
            for i, (name, operands, constant) in enumerate(program):
                program[i] = {"left": "right", "right": "left"}.get(name, name), operands, constant
        elif kind == "name":
            program[at] = generator.choice(["clone", "t", "mul"]), (a, b), constant
        return program

    @staticmethod
    def run_program(program, inputs):
        values = [x.clone() for x in inputs]
        for name, (i, j), constant in program:
            a, b = values[i], values[j]
            made = {
                "add": lambda: torch.add(a, b, alpha=constant),
                "sub": lambda: a - b,
                "mul": lambda: a * constant,
                "mm": lambda: torch.mm(a, b),
                "t": lambda: a.t(),
                "clone": lambda: a.contiguous().clone(),
                "add_": lambda: a.clone().add_(b, alpha=constant),
                "mul_": lambda: a.clone().t().mul_(constant).t(),
                "rows": lambda: torch.cat([a[:constant], b[constant:]]),
                "relu": lambda: torch.relu(a),
                "zeros": lambda: a + torch.zeros_like(b),
                "half": lambda: a / 4 * constant,
                "plus": lambda: a + constant,
                "sum": lambda: a + b[:constant].sum(0),
                "ones": lambda: torch.ones_like(a),
                "left": lambda: (a + b) + inputs[0],
                "right": lambda: a + (b + inputs[0]),
                "wide": lambda: a + (b[0] + b[constant - 1]),
            }[name]()
            values.append(made)
        return values[-1]

    def term(self, recorder, program):
        inputs = self.inputs(random.Random(0))
        for i, x in enumerate(inputs):
            recorder.name_leaf(x, "input", str(i))
        with recorder:
            made = self.run_program(program, inputs)
        return recorder.term_of(made)

    def test_zeros_that_widen_are_added(self):
        """Or what is left would have the sizes of the other addend."""
        recorder, x = Recorder(Terms()), drawn(random.Random(0), 3)
        recorder.name_leaf(x, "input", "x")
        with recorder:
            made, total = x + torch.zeros(2, 3), x.sum()
        self.assertEqual(recorder.terms[recorder.term_of(made)].op, "aten::add.Tensor")
        self.assertEqual(recorder.terms[recorder.term_of(total)].op, "aten::sum")

    def terms_of(self, *programs):
        """Of programs of two inputs, in the mode in which composites reach the recorder."""
        terms = set()
        for program in programs:
            recorder, inputs = Recorder(Terms()), [drawn(random.Random(i), 3, 3) for i in range(2)]
            for i, x in enumerate(inputs):
                recorder.name_leaf(x, "input", str(i))
            with torch.inference_mode(), recorder:
                made = program(*inputs)
            terms.add(recorder.term_of(made))
        return terms

    def test_what_counts_as_the_same(self):
        for same in (
            (lambda x, y: x.add_(y), lambda x, y: x + y, lambda x, y: y + x),
            (lambda x, y: x.to(torch.float64), lambda x, y: torch.empty(3, 3, dtype=torch.float64).copy_(x)),
            (lambda x, y: x + torch.zeros_like(y), lambda x, y: x.clone(), lambda x, y: x / 1, lambda x, y: x.mul_(1)),
            (lambda x, y: x[:1].sum(0), lambda x, y: x[0]),
            (lambda x, y: x[:1, :1].sum(), lambda x, y: x[0, 0]),
            (lambda x, y: torch.ones(3, 3) * 4, lambda x, y: torch.full((3, 3), 4.0)),
            (lambda x, y: torch.matmul(x, y), lambda x, y: torch.mm(x, y)),
        ):
            self.assertEqual(len(self.terms_of(*same)), 1)

    def test_what_does_not(self):
        for different in (
            (lambda x, y: x, lambda x, y: x + 1, lambda x, y: x * 2, lambda x, y: x / 2, lambda x, y: x - 1),
            (lambda x, y: torch.full((3, 3), 4.0), lambda x, y: torch.ones(3, 3) + 4, lambda x, y: torch.ones(3, 3) / 4),
            (lambda x, y: torch.add(x, y, alpha=2), lambda x, y: torch.add(y, x, alpha=2), lambda x, y: x + y),
            (lambda x, y: x[:2].sum(0), lambda x, y: x[:1].sum(0), lambda x, y: x[:1].sum(1), lambda x, y: x.sum()),
            (lambda x, y: x @ y, lambda x, y: y @ x, lambda x, y: x @ y.t()),
            (lambda x, y: x.to(torch.float64), lambda x, y: x, lambda x, y: x.to(torch.float16).float()),
        ):
            self.assertEqual(len(self.terms_of(*different)), len(different))


if __name__ == "__main__":
    unittest.main()
