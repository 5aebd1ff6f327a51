"""Elements of tensors, each defined by an expression of earlier elements.

An expression is one of

- the number of an element (int),
- ("number", Fraction),
- (operation, expression, ...): one of OPERATIONS, or the name of a function of which nothing else is known.

Equal definitions are one element, so what two graphs compute in the same way is the same element.
"""

import dataclasses
from fractions import Fraction

# ">" and "=" are 1 where they hold, else 0.
COMPARISONS = (">", "=")
OPERATIONS = ("+", "*", "/", *COMPARISONS)


@dataclasses.dataclass(frozen=True)
class Leaf:
    """Element `position` of a tensor that no operator made."""

    name: str
    position: int
    dtype: str
    constant: bool  # its content is fixed, but the file does not tell it


class Elements:
    def __init__(self):
        self.definitions = []
        self._numbers = {}

    def __len__(self):
        return len(self.definitions)

    def add(self, definition):
        """The number of the element that this defines, a new one or an old one. Comparisons get their own elements."""
        if type(definition) is int:
            return definition
        if isinstance(definition, tuple) and definition[0] != "number":
            definition = (definition[0], *map(self._without_comparisons, definition[1:]))
        known = self._numbers.setdefault(definition, len(self.definitions))
        if known == len(self.definitions):
            self.definitions.append(definition)
        return known

    def _without_comparisons(self, expression):
        if type(expression) is int or expression[0] == "number":
            return expression
        if expression[0] in COMPARISONS:
            return self.add(expression)
        return (expression[0], *map(self._without_comparisons, expression[1:]))


def number(value):
    return ("number", Fraction(value))


def total(parts):
    parts = tuple(parts)
    return ("+", *parts) if parts else number(0)


def product(*factors):
    return ("*", *factors)


def difference(a, b):
    return ("+", a, ("*", number(-1), b))


def quotient(a, b):
    return ("/", a, b)


def is_greater(a, b):
    return (">", a, b)


def is_equal(a, b):
    return ("=", a, b)


def parts_of(definition):
    """The elements that a definition names, and the functions of which nothing is known."""
    named, unknown = set(), set()
    open_parts = [] if isinstance(definition, Leaf) else [definition]
    while open_parts:
        part = open_parts.pop()
        if type(part) is int:
            named.add(part)
        elif part[0] != "number":
            if part[0] not in OPERATIONS:
                unknown.add(part[0])
            open_parts.extend(part[1:])
    return named, unknown


def is_comparison(definition):
    return isinstance(definition, tuple) and definition[0] in COMPARISONS


def is_linear(definition):
    """Whether a definition is a sum of multiples of elements, and no more."""
    if type(definition) is int:
        return True
    if isinstance(definition, Leaf) or definition[0] not in ("number", "+", "*", "/"):
        return False
    operation, *parts = definition
    if operation == "number":
        return True
    if operation == "*" and sum(bool(parts_of(part)[0]) for part in parts) > 1:
        return False
    if operation == "/" and parts_of(parts[1])[0]:
        return False
    return all(map(is_linear, parts))
