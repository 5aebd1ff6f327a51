"""Which value the memory of one rank holds, by storage.

A storage holds one value with one layout. A tensor over it shows elements of that value, found by comparing layouts, so
views need no record of their own, and a write through a view is a write to the storage. The bytes are hashed whenever they
are defined and compared whenever they are read: memory that changed without an operator no longer holds its value and
becomes a constant, a leaf named after its bytes.
"""

import ctypes
import hashlib
import math
import re
from dataclasses import dataclass
from typing import Callable, NamedTuple, Optional

import numpy as np
import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .terms import Value, choice, picked, term_of, type_text, whole

PLAIN = (torch.Tensor, torch.nn.Parameter)


class Layout(NamedTuple):
    offset: int
    sizes: tuple
    strides: tuple

    def offsets(self):
        """Of each element, in row-major order."""
        found = np.full((), self.offset, dtype=np.int64)
        for size, stride in zip(self.sizes, self.strides):
            found = found[..., None] + np.arange(size, dtype=np.int64) * stride
        return found.reshape(-1)


def layout_of(tensor):
    return Layout(tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride()))


def picks_of(base, view):
    """The elements of the base that the view shows; None if it shows other memory, or if elements of the base share memory."""
    own, shown = base.offsets(), view.offsets()
    first, last = own.min(), own.max()
    at = np.full(last - first + 1, -1, dtype=np.int64)
    at[own - first] = np.arange(len(own))
    if len(np.unique(own)) != len(own) or shown.min() < first or shown.max() > last:
        return None
    found = at[shown - first]
    return None if (found < 0).any() else found


def dtype_of(tensor):
    """ "f32", "bf16", "i64", "bool": as conformance/proof writes it, since it is part of a term's identity."""
    kind, bits = re.fullmatch(r"torch\.(bfloat|float|uint|int|bool|complex)(\d*)", str(tensor.dtype)).groups()
    return kind if kind == "bool" else {"float": "f", "bfloat": "bf", "int": "i", "uint": "u", "complex": "c"}[kind] + bits


def digest(data):
    return hashlib.blake2b(data, digest_size=16).digest()


def bytes_at(address, size):
    """The memory itself and no copy, so its owner must live on; of any size (ctypes.string_at takes less than 2 GiB)."""
    return (ctypes.c_char * size).from_address(address) if size else b""


def stored_bytes(tensor):
    """Those of the whole storage."""
    storage = tensor.untyped_storage()
    return bytes_at(storage.data_ptr(), storage.nbytes())


def own_bytes(tensor):
    """Those of a contiguous tensor."""
    return bytes_at(tensor.data_ptr(), tensor.numel() * tensor.element_size())


def dense_bytes(tensor):
    """Those of the elements of any tensor, in row-major order."""
    data, size = stored_bytes(tensor), tensor.element_size()
    elements = np.frombuffer(data, dtype=np.dtype(f"V{size}"), count=len(data) // size)
    return elements[layout_of(tensor).offsets()].tobytes()


def digest_of(tensor):
    return digest(f"{tensor.dtype}{list(tensor.shape)}".encode() + (dense_bytes(tensor) if tensor.numel() else b""))


def holds_elements(tensor):
    """A tensor without elements, and one of a trial run on shapes alone, hold nothing."""
    plain = type(tensor) in PLAIN and tensor.device.type == "cpu" and tensor.layout == torch.strided
    return plain and tensor.numel() > 0


class Arrival(NamedTuple):
    """A message that the sender described: its value, and the digest of its bytes."""

    value: Value
    digest: bytes


@dataclass
class Held:
    storage: StorageWeakRef
    data: int
    layout: Layout
    dtype: str
    value: Optional[Value] = None  # None: unset, unknown or arriving
    digest: bytes = b""
    unset: bool = False
    arriving: Optional[Callable[[], Optional[Arrival]]] = None


class Memory:
    def __init__(self, terms):
        self.terms = terms
        self.unseen_writes = 0  # reads that found other bytes than the last operator left
        self._held, self._sweep_at = {}, 4096  # by the address of the StorageImpl, which weak references keep unique

    def read(self, tensor):
        """The value of a tensor; of unknown memory a constant, a leaf named after its bytes."""
        if not holds_elements(tensor):
            return whole(self.terms.add("nothing", type_text(dtype_of(tensor), tensor.shape)), tensor.shape, dtype_of(tensor))
        held = self._find(tensor)
        if held is not None and held.arriving is not None:
            self._arrive(held, tensor)
        if held is None or held.value is None:
            return self._constant(tensor)
        if digest(stored_bytes(tensor)) != held.digest:
            self.unseen_writes += 1
        elif held.dtype == dtype_of(tensor):
            layout = layout_of(tensor)
            picks = None if layout == held.layout else picks_of(held.layout, layout)
            if layout == held.layout or picks is not None:
                return picked(self.terms, held.value, picks, layout.sizes)
        return self._constant(tensor)

    def define(self, tensor, value):
        """The tensor's storage holds the value and nothing else."""
        if holds_elements(tensor):
            held = self._hold(tensor)
            held.value, held.digest = value, digest(stored_bytes(tensor))

    def reserve(self, tensor):
        """New memory without content, as empty() makes it."""
        if holds_elements(tensor):
            self._hold(tensor).unset = True

    def expect(self, tensor, arriving):
        """A message will fill the tensor. `arriving` gives its Arrival, or None if none was sent."""
        if holds_elements(tensor):
            self._hold(tensor).arriving = arriving

    def write(self, tensor, value):
        """The elements of the tensor became the value; the storage's other elements stay."""
        if not holds_elements(tensor):
            return
        held, layout = self._find(tensor), layout_of(tensor)
        known = held is not None and (held.value is not None or held.unset)
        if not known or layout == held.layout or held.dtype != dtype_of(tensor):
            self.define(tensor, value)
            return
        picks = picks_of(held.layout, layout)
        if picks is None:
            held.value, held.unset = None, False
            return
        sizes = held.layout.sizes
        # A write through a view of all elements (autograd accumulates through transposed ones) replaces the value.
        if len(picks) == math.prod(sizes):
            self.define(tensor, value)
            return
        before = term_of(self.terms, held.value) if held.value else self.terms.add("unset", type_text(held.dtype, sizes))
        attributes = f"{type_text(held.dtype, sizes)} {choice(picks)}"
        root = self.terms.add("write", attributes, [before, term_of(self.terms, value)])
        held.value, held.unset, held.digest = whole(root, sizes, held.dtype), False, digest(stored_bytes(tensor))

    def shares(self, tensor, others):
        """Whether the tensor lies in the memory of one of the others."""
        if type(tensor) not in PLAIN or tensor.layout != torch.strided:
            return False
        address = tensor.untyped_storage()._cdata
        return any(type(x) in PLAIN and x.layout == torch.strided and x.untyped_storage()._cdata == address for x in others)

    def _arrive(self, held, tensor):
        arrival = held.arriving()
        if arrival is None:
            return  # not here yet: a read now gives the bytes that the memory holds by chance
        held.arriving = None
        value = arrival.value
        fits = value.dtype == held.dtype and math.prod(value.sizes) == math.prod(held.layout.sizes)
        if fits:  # whether the bytes are those that were sent, read() finds out
            held.value, held.digest = picked(self.terms, value, None, held.layout.sizes), arrival.digest

    def _find(self, tensor):
        storage = tensor.untyped_storage()
        held = self._held.get(storage._cdata)
        return held if held is not None and held.data == storage.data_ptr() else None

    def _hold(self, tensor):
        if len(self._held) >= self._sweep_at:
            self._held = {address: held for address, held in self._held.items() if not held.storage.expired()}
            self._sweep_at = max(4096, 2 * len(self._held))
        storage = tensor.untyped_storage()
        known = self._held.get(storage._cdata)
        reference = known.storage if known is not None else StorageWeakRef(storage)
        held = Held(reference, storage.data_ptr(), layout_of(tensor), dtype_of(tensor))
        self._held[storage._cdata] = held
        return held

    def _constant(self, tensor):
        name = f"{type_text(dtype_of(tensor), tensor.shape)} {hashlib.sha256(dense_bytes(tensor)).hexdigest()}"
        return whole(self.terms.add("constant", name), tensor.shape, dtype_of(tensor))


def leaf(terms, kind, name, tensor):
    """The value of a leaf with the tensor's content."""
    sizes, dtype = tuple(tensor.shape), dtype_of(tensor)
    content = hashlib.sha256(dense_bytes(tensor)).hexdigest()
    return whole(terms.add(kind, f"{name} {type_text(dtype, sizes)} {content}".strip()), sizes, dtype)


