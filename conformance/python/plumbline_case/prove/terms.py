"""Terms: how a value was computed, down to leaves, identified by a hash of all of it; and values, elements of a term."""

import hashlib
import math
import struct
from dataclasses import dataclass, replace
from typing import NamedTuple, Optional

import numpy as np


class Term(NamedTuple):
    """An operator or a leaf. `attributes` begins with the result's type, after which come the arguments."""

    op: str
    attributes: str
    operands: tuple


def identity(term):
    """The first 128 bits of a SHA-256, in hexadecimal. Different terms have different bytes: every text is preceded by its
    length. The same bytes as those of conformance/proof/terms/term.cc."""
    parts = []
    for text in (term.op.encode(), term.attributes.encode()):
        parts += [struct.pack("<Q", len(text)), text]
    for operand in term.operands:
        parts.append(struct.pack("<QQ", int(operand[:16], 16), int(operand[16:], 16)))
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


class Terms(dict):
    """{identity: Term}"""

    def __init__(self):
        super().__init__()
        self.pieces = {}  # of those that only put elements of others together: Pieces or SumOfPieces
        self.values = {}  # of terms "elements": the Value

    def add(self, op, attributes="", operands=()):
        term = Term(op, attributes, tuple(operands))
        self.setdefault(found := identity(term), term)
        return found


@dataclass(frozen=True)
class Value:
    """The content of a tensor as elements of a root term, whatever views and copies lie between.

    Views and copies choose elements. So a transposed view, its contiguous copy and the copy that another rank received have
    the same term; how the elements lie in memory does not count.
    """

    root: str
    root_sizes: tuple
    sizes: tuple
    dtype: str
    #: by element in row-major order: the index of the root's element; None: all, in order
    picks: Optional[np.ndarray] = None
    #: not empty: every element is this number, and the root is a fill of these sizes
    number: str = ""


def type_text(dtype, sizes):
    return f"{dtype}[{','.join(map(str, sizes))}]"


def whole(root, sizes, dtype):
    return Value(root, tuple(sizes), tuple(sizes), dtype)


def filled(terms, number, sizes, dtype):
    root = terms.add("fill", f"{number} {type_text(dtype, sizes)}")
    return replace(whole(root, sizes, dtype), number=number)


def picked(terms, value, picks, sizes):
    """The value with `sizes` whose elements are those of `value` at `picks` (None: all, in order)."""
    if value.number:
        return filled(terms, value.number, sizes, value.dtype)
    if picks is not None and value.picks is not None:
        picks = value.picks[picks]
    elif picks is None:
        picks = value.picks
    if picks is not None and len(picks) == math.prod(value.root_sizes) and (picks == np.arange(len(picks))).all():
        picks = None
    return resolved(terms, replace(value, picks=picks, sizes=tuple(sizes)))


def term_of(terms, value):
    """The identity of the value: the root's, or that of a term "elements" over it."""
    if value.picks is None and value.sizes == value.root_sizes:
        return value.root
    attributes = type_text(value.dtype, value.sizes)
    if value.picks is not None:
        attributes += f" from {value.picks.min()} to {value.picks.max()} of {math.prod(value.root_sizes)} {choice(value.picks)}"
    terms.values[found := terms.add("elements", attributes, [value.root])] = value
    return found


def choice(picks):
    """Equal choices have equal texts: the first position and the loops that visit them, outermost first, as "16+4x8,2x1,"
    (count x stride); a SHA-256 of the list where no loops do. The same texts as those of
    conformance/proof/terms/picks.cc."""
    loops = loops_of(picks)
    if loops is None:
        return hashlib.sha256(picks.astype("<i4").tobytes()).hexdigest()
    return f"{picks[0]}+" + "".join(f"{count}x{stride}," for count, stride in loops)


def loops_of(picks):
    """The loops [(count, stride)] that visit a list: its longest even beginning is the innermost one, and so on outwards.
    None if there are none."""
    loops, block, visited = [], 1, picks[:1]
    while block < len(picks):
        stride = int(picks[block] - picks[0])
        heads = picks[::block]
        even = heads == picks[0] + stride * np.arange(len(heads))
        count = len(heads) if even.all() else int(even.argmin())
        loops.insert(0, (count, stride))
        visited = (visited + stride * np.arange(count)[:, None]).ravel()
        block *= count
        if len(picks) % block:
            return None
    return loops if (visited == picks).all() else None


# --- terms that put elements of others together ---------------------------------------------------------------------


@dataclass(frozen=True)
class Pieces:
    """Of what cat, stack and the backward of a slice make: which element of which value each element is."""

    values: tuple
    source: np.ndarray  # by element: the number of the value; -1: zero
    index: np.ndarray  # by element: the element of that value

    def pick(self, terms, value, picks):
        sources = np.unique(self.source[picks])
        if len(sources) != 1:
            return None
        if sources[0] < 0:
            return filled(terms, "0", value.sizes, value.dtype)
        return picked(terms, self.values[sources[0]], self.index[picks], value.sizes)


@dataclass(frozen=True)
class SumOfPieces:
    """The sum of two values of the same sizes of which one has zeros."""

    left: Value
    right: Value

    def pick(self, terms, value, picks):
        left, right = (picked(terms, side, picks, value.sizes) for side in (self.left, self.right))
        return right if left.number == "0" else left if right.number == "0" else None


def resolved(terms, value):
    """Elements that all come from one of the values that were put together are elements of that one."""
    form = None if value.number else terms.pieces.get(value.root)
    if form is None:
        return value
    picks = np.arange(math.prod(value.root_sizes)) if value.picks is None else value.picks
    return form.pick(terms, value, picks) or value


def pieces_of(terms, value):
    """The part of terms.pieces that resolved() may need for elements of the value."""
    found, open_ = {}, [value.root]
    while open_:
        root = open_.pop()
        form = terms.pieces.get(root)
        if form is not None and root not in found:
            found[root] = form
            open_ += [v.root for v in (form.values if isinstance(form, Pieces) else (form.left, form.right))]
    return found
