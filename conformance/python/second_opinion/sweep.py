"""Merges elements that are multiples of one another, as equivalence checkers of circuits merge nodes (SAT sweeping).

Elements are visited in their order, operands first. One whose values at random numbers are a multiple of an earlier
one's is a candidate, and Z3 is asked about the definitions of the two. Operands are unknowns there, and those already
merged are multiples of one unknown: so no question is larger than an operator, however deep the model is. A question
that other random numbers answer with no is not asked.

A pipelined run has sums that the whole batch has not: those over one micro-batch. Where definitions alone do not tell,
what is merged with no element of the first graph is replaced by its own definition, and so on down to what is. If that
does not tell, linear elements of the first graph are replaced as well, for sums in another order. Comparisons never
are: signs agree often by chance, and products of signs and sums are what Z3 is slow at.
"""

from collections import defaultdict
from fractions import Fraction

import z3

from second_opinion.elements import Leaf, is_comparison, is_linear, parts_of
from second_opinion.solver import Solver, real, written
from second_opinion.values import value_of

MOST_UNFOLDED = 2000  # elements in one question
MOST_CANDIDATES = 64  # that one element is compared with
# What a question replaces by definitions: the two elements alone, elements that are merged with none of the first
# graph, and linear ones too.
OPERATORS, UNMERGED, LINEAR, NEVER = range(4)
TRIALS = 4  # at random numbers, before Z3 is asked
# What a number is a multiple of.
ONE = None


class TooLarge(Exception):
    pass


def direction(values):
    """Equal for vectors that are multiples of one another."""
    first = next((value for value in values if value), 1)
    return tuple(Fraction(value) / first for value in values)


class Numbers:
    """Definitions at random numbers in place of the unknowns: these soon tell that two are different."""

    number = staticmethod(lambda value: value)
    evaluated = staticmethod(value_of)

    def __init__(self, point):
        self._point = point

    def unknown(self, element):
        mixed = (element + 1) * (7919 + 104729 * self._point)
        return (mixed % 97 + 1) * (-1 if mixed // 97 % 2 else 1)


class Reals:
    """Definitions for Z3."""

    number = staticmethod(real)
    evaluated = staticmethod(written)
    unknown = staticmethod(lambda element: z3.Real(f"e{element}"))


class Question:
    """The definitions of elements in terms of unknowns: in numbers, or for Z3."""

    def __init__(self, sweep, depth, kind):
        self._sweep, self._depth, self._kind = sweep, depth, kind
        self._unfolded = {}

    def difference(self, number, factor, candidate):
        """Of an element and a multiple of another, or of ONE."""
        wanted = self._kind.number(factor)
        if candidate is not ONE:
            operands = {self._sweep.classes[part][1] for part in parts_of(self._sweep.elements.definitions[number])[0]}
            is_operand = candidate in operands
            wanted = wanted * (self._kind.unknown(candidate) if is_operand else self._definition(candidate))
        return self._definition(number) - wanted

    def _definition(self, number):
        content = self._sweep.elements.definitions[number]
        if isinstance(content, Leaf):
            return self._kind.unknown(number)
        return self._kind.evaluated(content, self._operand)

    def _operand(self, number):
        factor, representative = self._sweep.classes[number]
        if representative is ONE:
            return self._kind.number(factor)
        value = self._value(representative)
        return value if factor == 1 else self._kind.number(factor) * value

    def _value(self, number):
        if self._sweep.depth_of(number) > self._depth:
            return self._kind.unknown(number)
        if number not in self._unfolded:
            if len(self._unfolded) == MOST_UNFOLDED:
                raise TooLarge
            self._unfolded[number] = self._definition(number)
        return self._unfolded[number]


class Sweep:
    def __init__(self, elements, values, first_graph):
        """`values` are those of each element at random points, and the first `first_graph` elements the first graph."""
        self.elements, self.values, self.first_graph = elements, values, first_graph
        self.solver = Solver()
        self.classes = []  # of each element: (factor, the element or ONE that it is a multiple of)

    def run(self):
        candidates = defaultdict(list)
        for number, definition in enumerate(self.elements.definitions):
            alike = candidates[self._likeness(number, definition)]
            self.classes.append(self._class_of(number, definition, alike))
            if self.classes[number] == (1, number):
                alike.append(number)

    def _likeness(self, number, definition):
        """Equal for elements that may be multiples of one another."""
        values = direction(self.values[number])
        # Of comparisons only the operands' classes are ever known, and so many agree by chance that these are needed.
        return values, self._compared(definition) if is_comparison(definition) else None

    def _compared(self, definition):
        return frozenset(self.classes[part][1] for part in parts_of(definition)[0])

    def depth_of(self, number):
        """From which depth on the element is replaced by its definition."""
        definition = self.elements.definitions[number]
        if isinstance(definition, Leaf) or is_comparison(definition):
            return NEVER
        if number >= self.first_graph:
            return UNMERGED
        return LINEAR if is_linear(definition) else NEVER

    def are_equal(self, a, b):
        return self.classes[a] == self.classes[b]

    def ratio(self, a, b):
        """What a is of b, where that is proven; else None."""
        (a_factor, a_representative), (b_factor, b_representative) = self.classes[a], self.classes[b]
        return a_factor / b_factor if a_representative == b_representative and b_factor else None

    def _class_of(self, number, definition, candidates):
        if isinstance(definition, tuple) and definition[0] == "number":
            return definition[1], ONE
        if not isinstance(definition, Leaf):
            is_constant = len(set(self.values[number])) == 1
            for candidate in [*([ONE] * is_constant), *candidates[:MOST_CANDIDATES]]:
                factor = self._factor(number, candidate)
                if self._is_multiple(number, factor, candidate):
                    return factor, candidate
        return Fraction(1), number

    def _factor(self, number, candidate):
        values = self.values[number]
        if candidate is ONE:
            return Fraction(values[0])
        return next((Fraction(v) / c for v, c in zip(values, self.values[candidate]) if c), Fraction(0))

    def _is_multiple(self, *asked):
        number, _, _ = asked
        for depth in (OPERATORS, UNMERGED, LINEAR):
            question = Question(self, depth, Reals)
            try:
                if not self._differs_at_random(depth, asked) and self.solver.is_zero(question.difference(*asked)):
                    return True
            except TooLarge:
                self.solver.answers["too large"] += 1
                return False
            if is_comparison(self.elements.definitions[number]):
                return False
        return False

    def _differs_at_random(self, depth, asked):
        return any(Question(self, depth, Numbers(point)).difference(*asked) != 0 for point in range(TRIALS))
