"""The second opinion on graphs made by hand: what is equal is merged, and what only looks equal is not.

scripts/peer z3 5.4.1.0 -- -m unittest discover -s conformance/python/tests -p second_opinion_test.py
"""

import json
import os
import sys
import tempfile
import unittest
from fractions import Fraction
from unittest import mock

import z3

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from second_opinion import sweep, values  # noqa: E402
from second_opinion.__main__ import opinion  # noqa: E402
from second_opinion.elements import (
    Elements,
    Leaf,
    difference,
    is_greater,
    number,
    product,
    quotient,
    total,
)  # noqa: E402
from second_opinion.errors import Unsupported  # noqa: E402
from second_opinion.solver import Solver  # noqa: E402


class Sweeps(unittest.TestCase):
    """Of two definitions over the leaves x and y, with values that are given for points."""

    def merged(self, points, first, second, before=lambda x, y: ()):
        """The second as a multiple of the first, or None. They are of what is defined before them, or of x and y."""
        elements = Elements()
        x, y = (elements.add(Leaf(name, 0, "f32", False)) for name in "xy")
        operands = [elements.add(definition) for definition in before(x, y)] or (x, y)
        pair = [elements.add(definition(*operands)) for definition in (first, second)]
        columns = []
        for at in points:
            known = []
            for content in elements.definitions:
                is_leaf = isinstance(content, Leaf)
                known.append(
                    Fraction(at["xy".index(content.name)]) if is_leaf else values.value_of(content, known.__getitem__)
                )
            columns.append(known)
        done = sweep.Sweep(elements, list(zip(*columns)), 0)
        done.run()
        return done.ratio(pair[1], pair[0])

    def test_equal_sums_and_multiples_are_merged(self):
        points = [(2, 3), (5, -7)]
        self.assertEqual(self.merged(points, lambda x, y: total((x, y)), lambda x, y: total((y, x))), 1)
        product_of = lambda x, y: product(x, difference(x, y))
        expanded = lambda x, y: quotient(difference(product(number(2), x, x), product(number(2), y, x)), number(8))
        self.assertEqual(self.merged(points, product_of, expanded), Fraction(1, 4))
        self.assertEqual(
            self.merged(points, lambda x, y: is_greater(x, y), lambda x, y: is_greater(difference(x, y), number(0))), 1
        )

    def test_multiples_of_operands_count(self):
        before = lambda x, y: (total((x, y)), product(number(-3), total((x, y))))
        square = lambda of: lambda *operands: product(operands[of], operands[of])
        positive = lambda of: lambda *operands: is_greater(operands[of], number(0))
        self.assertEqual(self.merged([(1, 2), (3, -5)], square(0), square(1), before), 9)
        # Neither is positive at this point, elsewhere one is.
        with mock.patch.object(sweep.Sweep, "_differs_at_random", lambda *_: False):
            self.assertIsNone(self.merged([(1, -1)], positive(0), positive(1), before))

    def test_what_coincides_at_special_points_is_not(self):
        square, same = lambda x, y: product(x, x, y), lambda x, y: product(x, y)
        sign = lambda x, y: is_greater(x, number(0))
        for points, first, second in [
            ([(0, 2), (1, 3)], same, square),
            ([(2, 4), (3, 9)], lambda x, y: product(x, x, x), same),
            ([(2, 1), (3, 2)], sign, lambda x, y: is_greater(y, number(0))),
            ([(3, 3), (3, 3)], same, lambda x, y: number(9)),
            ([(3, 3), (3, 3)], lambda x, y: total((x, number(0))), lambda x, y: total((y, number(0)))),
        ]:
            self.assertIsNone(self.merged(points, first, second))
            # The same where Z3 is asked, since nothing told before.
            with mock.patch.object(sweep.Sweep, "_differs_at_random", lambda *_: False):
                self.assertIsNone(self.merged(points, first, second))

    def test_an_element_is_no_number(self):
        elements = Elements()
        x = [elements.add(Leaf("x", position, "f32", False)) for position in range(2)]
        self.assertNotEqual(elements.add(total((x[0], x[1]))), elements.add(total((x[0], number(x[1])))))

    def test_an_unknown_function_has_equal_values_for_equal_arguments_only(self):
        function = lambda x: ("f", x)
        points = [(0, 0)]
        add = lambda x, y: total((x, y))
        self.assertEqual(self.merged(points, lambda x, y: function(add(x, y)), lambda x, y: function(add(y, x))), 1)
        self.assertIsNone(self.merged(points, lambda x, y: function(x), lambda x, y: function(y)))

    def test_z3_answers(self):
        x, y = z3.Reals("x y")
        solver = Solver()
        for expression, wanted in [
            ((x + y) * (x - y) - x * x + y * y, True),
            (z3.If(x > 0, x, -x) - z3.If(x < 0, -x, x), True),
            (x * x - x, False),
            (x - x + 1, False),
            (z3.If(x > 0, x, -x) - x, False),
        ]:
            self.assertEqual(solver.is_zero(expression), wanted, expression)


def graph(parts, order, divisor):
    """A file of a model with the weight w, whose gradient is the sum over 4 rows of x, in parts."""
    heads, terms = [["parameter", "w f32[2] a"], ["input", "0 of step 0 f32[4,2] b"]], [[0], [1]]
    rows = 4 // parts
    sums = []
    for part in range(parts):
        first, last = 2 * rows * part, 2 * rows * (part + 1) - 1
        heads.append(["elements", f"f32[{rows},2] from {first} to {last} of 8 {first}+{2 * rows}x1,"])
        terms.append([len(heads) - 1, 1])
        heads.append(["aten::sum.dim_IntList", "f32[2] self=% dim=[0] keepdim=False dtype=None"])
        terms.append([len(heads) - 1, len(terms) - 1])
        sums.append(len(terms) - 1)
    found = sums[order[0]]
    for part in order[1:]:
        heads.append(["aten::add.Tensor", "f32[2] self=% other=% alpha=1"])
        terms.append([len(heads) - 1, found, sums[part]])
        found = len(terms) - 1
    heads += [["aten::mul.Tensor", "f32[2] self=% other=%"], ["aten::div.Scalar", f"f32[2] self=% other={divisor}"]]
    terms += [[len(heads) - 2, 0, found], [len(heads) - 1, len(terms)]]
    return heads, terms


class Files(unittest.TestCase):
    def opinion(self, parts, order, divisor, change=lambda file: file):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for microbatches, (heads, terms) in ((1, graph(1, [0], 4)), (parts, graph(parts, order, divisor))):
                result = {"0/grad/-/-/w": [len(terms) - 1]}
                file = dict(format="plumbline-terms/1", case="c", schedule="s", ranks=2, microbatches=microbatches)
                file |= dict(heads=heads, terms=terms, expected=result, found=result)
                paths.append(os.path.join(folder, f"{len(paths)}.json"))
                with open(paths[-1], "w", encoding="utf-8") as out:
                    json.dump(change(file) if len(paths) == 2 else file, out)
            return opinion(*paths)["verdicts"]["whole batch"]

    def test_the_sum_of_the_parts_in_any_order(self):
        for order in [0, 1, 2, 3], [3, 1, 0, 2]:
            verdict = self.opinion(4, order, 4)
            self.assertEqual((verdict["outcome"], verdict["elements"]), ("confirmed", {"proven": 2}))

    def test_a_part_that_is_lost_or_added_twice(self):
        for order in [0, 1, 2], [0, 1, 2, 2], [0, 1, 2, 3, 3]:
            verdict = self.opinion(4, order, 4)
            self.assertEqual((verdict["outcome"], verdict["elements"]), ("refuted", {"refuted": 2}))
            self.assertRegex(
                verdict["why"], r"^grad w of step 0, element \[0\]: expected \S+, found \S+, at random numbers"
            )

    def test_another_divisor_is_a_multiple(self):
        self.assertEqual(self.opinion(2, [0, 1], 16)["outcome"], "times 1/4")

    def test_a_result_that_is_not_delivered(self):
        verdict = self.opinion(2, [0, 1], 4, lambda file: file | {"found": {}})
        self.assertEqual(
            (verdict["outcome"], verdict["why"]), ("refuted", "grad w of step 0: sizes [2], found nothing")
        )

    def test_other_contents_and_other_leaves_are_refused(self):
        def renamed(file, text):
            file["heads"][1][1] = text
            return file

        for text, why in ("0 of step 0 f32[4,2] c", "another content"), ("1 of step 0 f32[4,2] b", "is no input of"):
            with self.assertRaisesRegex(Unsupported, why):
                self.opinion(2, [0, 1], 4, lambda file, text=text: renamed(file, text))


if __name__ == "__main__":
    unittest.main()
