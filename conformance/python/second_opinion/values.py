"""Values of elements where the leaves are random numbers, exactly.

They show which elements may be equal, and that two elements are not. They never show that two are equal.
"""

import hashlib
import random
from fractions import Fraction

from second_opinion.elements import Leaf
from second_opinion.errors import Unsupported

POINTS = 16


def drawn(leaf, generator):
    if leaf.dtype == "bool":
        return generator.randint(0, 1)
    if leaf.dtype.startswith(("i", "u")):
        return generator.randint(0, 15)  # most are indices into the few rows of a tiny table
    return generator.choice((-1, 1)) * generator.randint(1, 99)


def of_unknown_function(name, arguments):
    """Equal arguments have equal values."""
    text = " ".join([name, *(str(Fraction(x)) for x in arguments)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:2], "big") - 2**15


def value_of(expression, element):
    """Of an expression, where element(number) is that of an element."""
    if type(expression) is int:
        return element(expression)
    operation, *parts = expression
    if operation == "number":
        return parts[0]
    operands = [value_of(part, element) for part in parts]
    if operation == "+":
        return sum(operands)
    if operation == "*":
        result = 1
        for operand in operands:
            result *= operand
        return result
    if operation == "/":
        if not operands[1]:
            raise Unsupported("a divisor is 0 where leaves are random numbers; expected divisors that are not")
        return Fraction(operands[0]) / operands[1]
    if operation == ">":
        return int(operands[0] > operands[1])
    if operation == "=":
        return int(operands[0] == operands[1])
    return of_unknown_function(operation, operands)


def at_random(elements):
    """The values of all elements at POINTS random points: one list of values for each element."""
    columns = []
    for point in range(POINTS):
        generator = random.Random(point)
        values = []
        for definition in elements.definitions:
            is_leaf = isinstance(definition, Leaf)
            values.append(drawn(definition, generator) if is_leaf else value_of(definition, values.__getitem__))
        columns.append(values)
    return list(zip(*columns))
