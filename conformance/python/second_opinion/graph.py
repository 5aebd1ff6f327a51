"""From the terms of a file to elements."""

import math
import re
from collections import namedtuple

import numpy as np

from second_opinion import operators, views
from second_opinion.elements import Leaf, number
from second_opinion.errors import Unsupported
from second_opinion.fractions_of import fraction

VARIABLES = ("parameter", "buffer", "input", "target")
TYPE = r"(\w+)\[([\d,]*)\]"

# `elements` is an array of numbers of elements.
Tensor = namedtuple("Tensor", "dtype elements")


def type_in(text):
    """(dtype, shape, the words before it, the words behind it) of the first type in a text."""
    match = re.search(rf"(?:^|(?<= )){TYPE}(?= |$)", text)
    if not match:
        raise Unsupported(f"no type such as float32[2,3] in '{text}'")
    shape = tuple(map(int, filter(None, match[2].split(","))))
    return match[1], shape, text[: match.start()].strip(), text[match.end() :].strip()


def plain_number(text):
    number = fraction(text)
    return int(number) if number.denominator == 1 else number


def argument(text, operands):
    """Of an operator's call; takes its tensors from the iterator `operands`."""
    if text == "%":
        return next(operands)
    if text.startswith("%"):
        return [next(operands) for _ in range(int(text[1:]))]
    if text.startswith("["):
        return [plain_number(item) for item in text[1:-1].split(", ") if item]
    if text in ("None", "True", "False"):
        return {"None": None, "True": True, "False": False}[text]
    try:
        return plain_number(text)
    except ValueError:
        return text


class Graph:
    """Adds the terms of files to `elements`. The same leaf in two files is the same elements."""

    def __init__(self, elements):
        self.elements = elements
        self.contents = {}  # of each variable leaf: the digest of its content

    def tensors(self, terms):
        """The tensor of each term, None for an argument that is not there."""
        tensors = []
        for term in terms:
            operands = [tensors[operand] for operand in term.operands]
            tensors.append(self._tensor(term, operands))
        return tensors

    def _new(self, dtype, definitions):
        result = np.empty(np.shape(definitions), dtype=object)
        for place in np.ndindex(result.shape):
            result[place] = self.elements.add(definitions[place])
        return Tensor(dtype, result)

    def _leaf(self, name, dtype, shape, constant):
        definitions = np.empty(math.prod(shape), dtype=object)
        definitions[:] = [Leaf(name, position, dtype, constant) for position in range(definitions.size)]
        return self._new(dtype, definitions.reshape(shape))

    def _fill(self, text, dtype, shape):
        return self._new(dtype, np.full(shape, self.elements.add(number(fraction(text))), dtype=object))

    def _tensor(self, term, operands):
        kind, attributes = term.kind, term.attributes
        if kind == "none":
            return None
        if kind == "number":
            return self._fill(attributes, "number", ())
        dtype, shape, before, behind = type_in(attributes)
        if kind in VARIABLES:
            name = f"{kind} {before}"
            if self.contents.setdefault(name, behind) != behind:
                raise Unsupported(f"{name} has another content in the other file; expected runs of one case")
            return self._leaf(name, dtype, shape, constant=False)
        if kind == "constant":
            return self._leaf(f"constant {attributes}", dtype, shape, constant=True)
        if kind == "fill":
            return self._fill(before, dtype, shape)
        if kind == "elements":
            return self._new(dtype, chosen(operands[0].elements.ravel(), behind).reshape(shape))
        if kind == "write":
            written = operands[0].elements.ravel().copy()
            written[views.positions(behind)] = operands[1].elements.ravel()
            return self._new(dtype, written.reshape(shape))
        if kind == "cast":
            return self._cast(operands[0], dtype)
        if kind == "broadcast":
            return self._new(dtype, np.broadcast_to(operands[0].elements, shape))
        if "::" not in kind:
            raise Unsupported(f"a term of kind '{kind}' has no meaning here")
        if before:
            raise Unsupported(f"{before} of operator {kind} has no meaning here; known are first results")
        return self._result(kind, behind, operands, dtype, shape)

    def _cast(self, tensor, dtype):
        """No number changes: float dtypes are the reals here."""
        if not dtype.startswith(("f", "bf")) and dtype != tensor.dtype:
            raise Unsupported(f"a cast from {tensor.dtype} to {dtype}; expected one to a floating-point dtype")
        return Tensor(dtype, tensor.elements)

    def _result(self, name, call, operands, dtype, shape):
        left = iter([None if operand is None else operand.elements for operand in operands])
        arguments = {name: argument(text, left) for name, text in re.findall(r"(\w+)=(\[.*?\]|\S+)", call)}
        try:
            definitions = operators.apply(name, arguments)
        except (ArithmeticError, IndexError, ValueError) as error:
            sizes = " ".join("none" if operand is None else str(operand.elements.shape) for operand in operands)
            raise Unsupported(f"operator {name} with '{call}' does not go with operands of {sizes}: {error}") from None
        if definitions.shape != shape or next(left, None) is not None:
            raise Unsupported(f"operator {name} with '{call}' gives {definitions.shape}, and the file says {shape}")
        return self._new(dtype, definitions)


def chosen(root, choice):
    """The elements that a view shows; without a choice, all."""
    if not choice:
        return root
    match = re.fullmatch(r"from (\d+) to (\d+) of (\d+) (\S+)", choice)
    positions = views.positions(match[4]) if match else np.array([])
    if not match or [positions.min(), positions.max(), root.size] != list(map(int, match.groups()[:3])):
        raise Unsupported(f"a view of {root.size} elements with '{choice}'; expected from FIRST to LAST of SIZE LOOPS")
    return root[positions]
