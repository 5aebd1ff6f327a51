"""Z3, asked whether one expression is a multiple of another for all real values of their parts."""

from collections import Counter
from fractions import Fraction

import z3

MILLISECONDS = 2000  # of a single question
MOST_STEPS = 2_000_000  # of the simplifier, a second or so


def real(value):
    value = Fraction(value)
    return z3.Q(value.numerator, value.denominator)


def indicator(condition):
    return z3.If(condition, z3.RealVal(1), z3.RealVal(0))


def written(expression, element):
    """As Z3 has it; `element` gives Z3's expression of an element."""
    if type(expression) is int:
        return element(expression)
    operation, *parts = expression
    if operation == "number":
        return real(parts[0])
    operands = [written(part, element) for part in parts]
    if operation == "+":
        return z3.Sum(operands)
    if operation == "*":
        return z3.Product(operands)
    if operation == "/":
        return operands[0] / operands[1]
    if operation == ">":
        return indicator(operands[0] > operands[1])
    if operation == "=":
        return indicator(operands[0] == operands[1])
    return z3.Function(operation, *[z3.RealSort()] * (len(operands) + 1))(*operands)


class Solver:
    def __init__(self):
        self.answers = Counter()  # normal form, another number, unsat, sat, unknown, or too large to be asked

    def is_zero(self, expression):
        """Whether Z3 proves it: by its normal form of polynomials, or since it finds no other value."""
        try:
            normal = z3.simplify(expression, som=True, max_steps=MOST_STEPS)
        except z3.Z3Exception:  # too many steps
            normal = expression
        if z3.is_rational_value(normal):
            is_zero = normal.as_fraction() == 0
            self.answers["normal form" if is_zero else "another number"] += 1
            return is_zero
        solver = z3.SolverFor("QF_UFNRA")
        solver.set("timeout", MILLISECONDS)
        solver.add(normal != 0)
        answer = str(solver.check())
        self.answers[answer] += 1
        return answer == "unsat"
