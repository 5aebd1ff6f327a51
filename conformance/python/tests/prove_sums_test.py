"""Sums of plumbline_case.prove: the same sum in another order, another factor, another sum."""

import os
import random
import re
import sys
import unittest
from fractions import Fraction

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from plumbline_case.prove.recorder import Recorder  # noqa: E402
from plumbline_case.prove.sums import JOINTLY, LINEAR, NormalForms, exact_text, factor_between, factor_text, rational_of  # noqa: E402
from plumbline_case.prove.terms import Terms  # noqa: E402
from whole_numbers import drawn  # noqa: E402

torch.set_num_threads(1)


class Sums(unittest.TestCase):
    def test_the_table_is_that_of_the_runtime(self):
        """Whose test holds each line against LibTorch: conformance/proof/sums/linear_operators_test.cc."""
        with open(os.path.join(HERE, "..", "..", "proof", "sums", "linear_operators.cc"), encoding="utf-8") as file:
            lines = re.findall(r'\{"([\w:.]+)", (first|product|jointly)\}', file.read())
        kinds = {"first": (0,), "product": (0, 1), "jointly": JOINTLY}
        taken_apart = {"aten::add.Tensor", "aten::sub.Tensor", "aten::neg", "aten::mul.Scalar", "aten::div.Scalar"}
        self.assertLessEqual(taken_apart, {name for name, _ in lines})  # normal forms treat sums and factors themselves
        theirs = {name: kinds[kind] for name, kind in lines if name not in taken_apart}
        self.assertGreater(len(theirs), 20)
        self.assertEqual(theirs, {name: LINEAR.get(name) for name in theirs})

    def test_rationals(self):
        """Against a search of all smaller denominators."""
        generator = random.Random(5)
        for _ in range(200):
            number = generator.randint(-50, 50) / generator.randint(1, 200)
            found = rational_of(repr(number))
            smallest = next(Fraction(round(number * q), q) for q in range(1, 201) if round(number * q) / q == number)
            self.assertEqual(found, smallest, number)
        self.assertIsNone(rational_of("inf"))
        self.assertIsNone(rational_of("much"))

    def test_a_factor_of_any_length_has_a_text(self):
        long = Fraction(3**20000, 2**20000)
        self.assertEqual(Fraction(*(int(part, 16) for part in exact_text(long).split("/"))), long)
        self.assertLess(len(factor_text(long)), 60)
        self.assertEqual((exact_text(Fraction(3, 4)), factor_text(Fraction(3, 4))), ("3/4", "3/4"))

    def test_elements_of_sums(self):
        recorder, (x, y, w) = Recorder(Terms()), [drawn(random.Random(i), 3, 3) for i in range(3)]
        for name, leaf in (("x", x), ("y", y), ("w", w)):
            recorder.name_leaf(leaf, "leaf", name)
        with recorder:
            pairs = [
                ((x + x.t()).diagonal() + y[0], x.diagonal() * 2 + y[0]),
                ((x / 2 + x / 2).t().reshape(-1), x.t().reshape(-1)),
                ((y + x)[1:], x[1:] + y[1:]),
                (((x + w[0]) + y)[1:], ((y + w[0]) + x)[1:]),  # one is widened: the sum is taken as a whole
            ]
        for number, (one, other) in enumerate(pairs):
            self.assertTrue(torch.equal(one, other))
            terms = recorder.term_of(one), recorder.term_of(other)
            self.assertEqual(factor_between(NormalForms(recorder.terms), *terms), 1, number)

    def test_a_tensor_of_one_number_is_a_factor(self):
        recorder, x, row = Recorder(Terms()), torch.ones(3, 3) * 5, torch.ones(1)
        recorder.name_leaf(x, "leaf", "x")
        recorder.name_leaf(row, "leaf", "row")
        with recorder:
            scaled, widened = x * torch.full((1,), 4.0), row * torch.full((3,), 4.0)
        forms = NormalForms(recorder.terms)
        self.assertEqual(factor_between(forms, recorder.term_of(x), recorder.term_of(scaled)), 4)
        self.assertIsNone(factor_between(forms, recorder.term_of(row), recorder.term_of(widened)))

    def test_shuffled_and_scaled_sums(self):
        for seed in range(100):
            generator, recorder = random.Random(seed), Recorder(Terms())
            leaves = [drawn(generator, 2, 2) for _ in range(4)]
            for i, x in enumerate(leaves):
                recorder.name_leaf(x, "leaf", str(i))
            addends = [(generator.randrange(4), generator.choice([-2, -1, 1, 3])) for _ in range(generator.randint(2, 6))]
            shuffled = generator.sample(addends, len(addends))
            scale, lost = generator.choice([-2, 0.5, 3]), generator.randrange(len(addends))
            with recorder:
                made = [self.added(leaves, one, generator) for one in (addends, shuffled, addends[:lost] + addends[lost + 1 :])]
                scaled = made[1] * scale
            terms = [recorder.term_of(x) for x in (*made, scaled)]
            forms = NormalForms(recorder.terms)
            self.assertEqual(factor_between(forms, terms[0], terms[1]), 1, f"seed {seed}")
            total = [sum(c for i, c in addends if i == leaf) for leaf in range(4)]
            if any(total):
                self.assertEqual(factor_between(forms, terms[0], terms[3]), Fraction(scale), f"seed {seed}")
                self.assertNotEqual(factor_between(forms, terms[0], terms[2]), 1, f"seed {seed}")

    @staticmethod
    def added(leaves, addends, generator):
        if len(addends) == 1:
            return leaves[addends[0][0]] * addends[0][1]
        at = generator.randint(1, len(addends) - 1) if len(addends) > 1 else 0
        left, right = (Sums.added(leaves, part, generator) for part in (addends[:at], addends[at:]))
        return left + right if generator.random() < 0.5 else right.add_(left)


if __name__ == "__main__":
    unittest.main()
