"""Gives every value that a rank computes its term: a mode of torch's dispatcher below autograd, which sees each operator of
forward, backward, accumulation and optimizer."""

import functools
import hashlib
import math
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .. import place
from .memory import PLAIN, Memory, dtype_of, leaf
from .normalisations import COPIES, FILLS, RESERVES, BATCH_NORMS, functional_name, is_unread
from .terms import Pieces, SumOfPieces, filled, picked, term_of, type_text, whole


@dataclass
class Log:
    """What one rank, or a whole run, has executed."""

    first: dict = field(default_factory=dict)  # {identity: the Place where the term was computed first}
    times: Counter = field(default_factory=Counter)  # of each term, inside of actions
    operators: set = field(default_factory=set)  # those that computed
    read_numbers: set = field(default_factory=set)  # those that gave numbers, not tensors, to the program
    unseen_writes: int = 0

    def merge(self, other):
        self.first = other.first | self.first
        self.times.update(other.times)
        self.operators |= other.operators
        self.read_numbers |= other.read_numbers
        self.unseen_writes += other.unseen_writes


@dataclass
class Call:
    """What one call does to terms."""

    kind: str = "computes"  # or "copies", "fills", "reserves"
    name: str = ""
    arguments: dict = field(default_factory=dict)
    attributes: str = ""
    operands: list = field(default_factory=list)
    values: list = field(default_factory=list)  # of its tensor arguments, if it computes
    number: str = ""  # if it fills
    copied: object = None  # if it copies
    tensors: list = field(default_factory=list)  # all tensor arguments
    written: list = field(default_factory=list)  # those that are written
    before: dict = field(default_factory=dict)  # of those whose new content, and no other result, depends on the old one


def number_text(number):
    return f"{number:.17g}"


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def text_of(value):
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(text_of, value)) + "]"
    return number_text(value) if isinstance(value, float) else str(value).replace(" ", "")


def tensors_of(value):
    """Those of an argument or a result, None for absent ones of a list; None if it holds no tensors."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)) and any(isinstance(item, torch.Tensor) for item in value):
        return list(value)
    return None


@functools.cache
def is_composite(func):
    return torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), "CompositeImplicitAutograd")


class Recorder(TorchDispatchMode):
    def __init__(self, terms):
        super().__init__()
        self.terms, self.memory, self.log = terms, Memory(terms), Log()

    def name_leaf(self, tensor, kind, name):
        """Makes the tensor's present content a leaf."""
        if tensor.numel():
            self.memory.define(tensor, leaf(self.terms, kind, name, tensor))

    def term_of(self, tensor):
        return term_of(self.terms, self.memory.read(tensor))

    def take_log(self):
        self.log.unseen_writes = self.memory.unseen_writes
        return self.log

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [t for value in (*args, *kwargs.values()) for t in tensors_of(value) or () if t is not None]
        # Tensors of other types are trials on shapes; c10d's operators move bytes, of which messages.py knows the terms.
        if func.namespace == "c10d" or any(type(t) not in PLAIN for t in tensors):
            return func(*args, **kwargs)
        if is_composite(func):
            with self:
                result = func.decompose(*args, **kwargs)
            if result is not NotImplemented:
                return result
        call = self._describe(func, args, kwargs)
        result = func(*args, **kwargs)
        self._define_results(func._schema, call, result)
        return result

    # --- what a call does --------------------------------------------------------------------------------------------

    def _describe(self, func, args, kwargs):
        schema = func._schema
        arguments = []
        for i, argument in enumerate(schema.arguments):
            given = args[i] if i < len(args) else kwargs.get(argument.name, argument.default_value)
            arguments.append((argument.name, given))
        call = Call(name=functional_name(schema), arguments=dict(arguments))
        quiet_statistics = schema.name == "aten::native_batch_norm" and arguments[BATCH_NORMS[schema.name]][1]
        writes = [a.alias_info is not None and a.alias_info.is_write for a in schema.arguments]
        for i, (_, value) in enumerate(arguments):
            tensors = [t for t in tensors_of(value) or () if t is not None]
            call.tensors += tensors
            if not (writes[i] or quiet_statistics and i in (3, 4)):
                continue
            for tensor in tensors:
                if is_unread(schema.name, arguments, i):
                    call.before[len(call.written)] = self.term_of(tensor)
                call.written.append(tensor)
        if schema.name in RESERVES:
            call.kind = "reserves"
        elif schema.name in FILLS and (number := self._fill_number(schema.name, call.arguments)) is not None:
            call.kind, call.number = "fills", number
        elif schema.name in COPIES:
            source = arguments[1 if schema.name == "aten::copy_" else 0][1]
            call.kind = "copies"
            if is_number(source):
                call.number = number_text(source)
            else:
                call.copied = self.memory.read(source)
        else:
            self._describe_computation(func, arguments, writes, call)
        return call

    def _fill_number(self, name, arguments):
        """None if it is a tensor's."""
        given = next((arguments[key] for key in ("fill_value", "value", "s") if arguments.get(key) is not None), None)
        if given is None:
            return "1" if "ones" in name else "0"
        return number_text(float(given)) if isinstance(given, (int, float)) else None

    def _describe_computation(self, func, arguments, writes, call):
        schema = func._schema
        for i, (name, value) in enumerate(arguments):
            if is_unread(schema.name, arguments, i) or (writes[i] and schema.arguments[i].kwarg_only):
                continue
            tensors = tensors_of(value)
            if tensors is None and is_number(value) and str(schema.arguments[i].type) == "Tensor":
                call.attributes += f" {name}=%"
                call.operands.append(self.terms.add("number", number_text(value)))
                call.values.append(None)
                continue
            if tensors is None:
                call.attributes += f" {name}={text_of(value)}"
                continue
            call.attributes += f" {name}=%" + ("" if isinstance(value, torch.Tensor) else str(len(tensors)))
            for tensor in tensors:
                read = None if tensor is None else self.memory.read(tensor)
                call.values.append(read)
                call.operands.append(self.terms.add("none") if read is None else term_of(self.terms, read))
        if torch.Tag.nondeterministic_seeded in func.tags:
            call.attributes += " random=" + hashlib.sha256(torch.get_rng_state().numpy().tobytes()).hexdigest()
        self._leave_out(call)
        if call.name == "aten::add.Tensor" and call.arguments["alpha"] == 1 and None not in call.values:
            call.operands.sort()

    def _leave_out(self, call):
        """x + 0, x * 1 and x / 1 are x, and so is a sum over one element; 1 * number is a fill."""
        if call.name in ("aten::sum", "aten::sum.dim_IntList"):
            sizes, dims = call.values[0].sizes, call.arguments.get("dim")
            if call.arguments["dtype"] is None and all(sizes[d] == 1 for d in dims or range(len(sizes))):
                call.kind, call.copied = "copies", call.values[0]
            return
        if call.name not in ("aten::add.Tensor", "aten::mul.Tensor", "aten::div.Tensor"):
            return
        left, right = call.values
        other = call.arguments["other"]
        if right is None and is_number(other):
            if call.name != "aten::add.Tensor" and other == 1:
                call.kind, call.copied = "copies", left
            elif call.name == "aten::mul.Tensor" and left.number == "1":
                call.kind, call.number = "fills", number_text(other)
            return
        if left is None or right is None or call.name != "aten::add.Tensor" or call.arguments["alpha"] != 1:
            return
        if left.sizes == right.sizes and left.dtype == right.dtype and "0" in (left.number, right.number):
            call.kind, call.copied = "copies", right if left.number == "0" else left

    # --- what it made ------------------------------------------------------------------------------------------------

    def _define_results(self, schema, call, result):
        results = tensors_of(result)
        if results is None:
            if result is not None:
                self.log.read_numbers.add(schema.name)
            return
        if call.kind == "computes":
            self.log.operators.add(schema.name)
        number = 0
        for tensor in call.written:
            self.memory.write(tensor, self._value(call, tensor, number))
            number += 1
        seen = []
        for tensor in results:
            if tensor is None:
                number += 1
                continue
            if self.memory.shares(tensor, call.tensors):  # a view, or the operand that was written
                continue
            if call.kind == "reserves":
                self.memory.reserve(tensor)
            elif self.memory.shares(tensor, seen):
                self.memory.write(tensor, self._value(call, tensor, number))
            else:
                self.memory.define(tensor, self._value(call, tensor, number))
            number += 1
            seen.append(tensor)

    def _value(self, call, tensor, number):
        """The value of the call's tensor of that number, which it made or wrote."""
        sizes, dtype = tuple(tensor.shape), dtype_of(tensor)
        if call.number:
            return filled(self.terms, call.number, sizes, dtype)
        if call.copied is not None:
            return self._copied(call.copied, sizes, dtype)
        operands = [*call.operands, call.before[number]] if number in call.before else call.operands
        which = f"result {number} " if number else ""
        root = self.terms.add(call.name, which + type_text(dtype, sizes) + call.attributes, operands)
        here = place.now()
        self.log.first.setdefault(root, here)
        if here.action:
            self.log.times[root] += 1
        value = whole(root, sizes, dtype)
        self._note_pieces(call, value)
        return value

    def _copied(self, source, sizes, dtype):
        if source.number:
            return filled(self.terms, source.number, sizes, dtype)
        if source.dtype != dtype:
            root = self.terms.add("cast", type_text(dtype, source.sizes), [term_of(self.terms, source)])
            source = whole(root, source.sizes, dtype)
        if math.prod(source.sizes) == math.prod(sizes):
            return picked(self.terms, source, None, sizes)
        return whole(self.terms.add("broadcast", type_text(dtype, sizes), [term_of(self.terms, source)]), sizes, dtype)

    def _note_pieces(self, call, value):
        """Operators that only put elements of their operands together."""
        if value.root in self.terms.pieces:
            return
        count = math.prod(value.sizes)
        if call.name in ("aten::cat", "aten::stack") and all(v.dtype == value.dtype for v in call.values):
            dim = call.arguments["dim"]
            numbers = [np.arange(math.prod(v.sizes)).reshape(v.sizes) for v in call.values]
            join = np.concatenate if call.name == "aten::cat" else np.stack
            index = join(numbers, dim).reshape(-1)
            source = join([np.full(n.shape, i) for i, n in enumerate(numbers)], dim).reshape(-1)
            self.terms.pieces[value.root] = Pieces(tuple(call.values), source, index)
        elif call.name in ("aten::slice_backward", "aten::select_backward"):
            given = call.arguments
            rows = given["index"] if "index" in given else slice(given["start"], given["end"], given["step"])
            where = (slice(None),) * (given["dim"] % len(value.sizes)) + (rows,)
            index = np.full(value.sizes, -1)
            index[where] = np.arange(math.prod(call.values[0].sizes)).reshape(call.values[0].sizes)
            self.terms.pieces[value.root] = Pieces((call.values[0],), np.where(index.reshape(-1) < 0, -1, 0), index.reshape(-1))
        elif call.name == "aten::add.Tensor" and call.arguments["alpha"] == 1 and None not in call.values:
            left, right = call.values
            has_zeros = any(self._has_zeros(v) for v in call.values)
            if has_zeros and left.sizes == right.sizes == value.sizes and left.dtype == right.dtype and count:
                self.terms.pieces[value.root] = SumOfPieces(left, right)

    def _has_zeros(self, value):
        form = self.terms.pieces.get(value.root)
        return isinstance(form, SumOfPieces) or isinstance(form, Pieces) and bool((form.source < 0).any())

