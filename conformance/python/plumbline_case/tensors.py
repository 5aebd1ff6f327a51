"""Reads and writes safetensors files, with nothing but NumPy and the standard library.

Format: 8 bytes little-endian length of the header; the header, a JSON object from name to
{dtype, shape, data_offsets}; the data, row-major, offsets counted from the end of the header.
"""

import json
import math
import os
import struct
import tempfile
from typing import NamedTuple

import numpy as np

from .regular import open_regular
from .schema import FormatError, parse_json, quoted

# NumPy has no bfloat16: BF16 is read and written as its bits, in uint16. Cases and results have no U16.
DTYPES = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),
    "I64": np.dtype("<i8"),
    "I32": np.dtype("<i4"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
MAX_HEADER = 100_000_000
MOST_DIMENSIONS = 32  # of an array of any NumPy, so that no verdict depends on its version


class Stored(NamedTuple):
    """A tensor and the name of its element type in the file."""

    dtype: str
    array: np.ndarray


def bf16_to_f32(bits):
    """The values of bfloat16 numbers given by their bits."""
    return (np.asarray(bits).astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(values):
    """The bits of the nearest bfloat16 numbers; of two that are equally near, the even one."""
    values = np.asarray(values, dtype=np.float32)
    bits = np.ascontiguousarray(values).view(np.uint32)  # which has a dimension, even if `values` has none
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).reshape(values.shape)
    return np.where(np.isnan(values), 0x7FC0, rounded).astype(np.uint16)


def is_entry(entry):
    def numbers(value):
        return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 63 for n in value)

    return (
        isinstance(entry, dict)
        and entry.keys() == {"dtype", "shape", "data_offsets"}
        and isinstance(entry["dtype"], str)
        and entry["dtype"] in DTYPES
        and numbers(entry["shape"])
        and numbers(entry["data_offsets"])
        and len(entry["data_offsets"]) == 2
    )


def read_stored(path, most=None, follow=True):
    """{name: Stored}. Raises FormatError for anything but one well-formed file, and for one of more than `most` bytes; its
    data are read only if its size and its header agree. `follow` as in open_regular()."""
    with open_regular(path, follow) as file:
        size = os.fstat(file.fileno()).st_size
        if most is not None and size > most:
            raise FormatError(f"{path}: {size} bytes; expected at most {most}")
        return stored_in(file, size, path)


def stored_in(file, size, path):
    """read_stored() of an open file with so many bytes."""
    start = file.read(8)
    if len(start) < 8:
        raise FormatError(f"{path}: {size} bytes are too few for a safetensors file")
    (length,) = struct.unpack("<Q", start)
    if length > min(size - 8, MAX_HEADER):
        raise FormatError(f"{path}: a header of {length} bytes in a file of {size}")
    header = parse_json(file.read(length), f"{path}: the header")
    entries = checked_entries(path, header, size - 8 - length)
    try:
        data = file.read(size - 8 - length)
        if len(data) < size - 8 - length:
            raise FormatError(f"{path}: it became shorter while it was read")
        return {name: Stored(dtype, array_in(data, dtype, shape, begin)) for name, dtype, shape, begin in entries}
    except MemoryError:
        raise FormatError(f"{path}: no memory for its {size} bytes") from None


def array_in(data, dtype, shape, begin):
    count = math.prod(shape)
    array = np.frombuffer(data, dtype=DTYPES[dtype], count=count, offset=begin) if count else np.empty(0, DTYPES[dtype])
    return array.reshape(shape).copy()


def checked_entries(path, header, size):
    """[(name, dtype, shape, begin)] of the header of a file with `size` bytes of data, which the tensors tile."""
    if not isinstance(header, dict):
        raise FormatError(f"{path}: the header is not an object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise FormatError(f"{path}: __metadata__ is not an object of strings")
    for name, entry in header.items():
        if not is_entry(entry):
            raise FormatError(f"{path}: {quoted(name)}: expected a dtype, a shape and data_offsets, got {json.dumps(entry)[:80]}")
        check_shape(f"{path}: {quoted(name)}", entry["shape"], DTYPES[entry["dtype"]].itemsize)
    entries, used = [], 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        shape = entry["shape"]
        if begin != used or end - begin != math.prod(shape) * DTYPES[entry["dtype"]].itemsize or end > size:
            raise FormatError(f"{path}: {quoted(name)}: data_offsets [{begin}, {end}] do not fit shape {shape} or the file")
        used = end
        entries.append((name, entry["dtype"], shape, begin))
    if used != size:
        raise FormatError(f"{path}: {size - used} bytes after the last tensor")
    return entries


def check_shape(where, shape, itemsize):
    """Raises FormatError, in one line that begins with `where`, unless NumPy has arrays of this shape. A size of 0 counts as 1
    there, so that the others are limited with it as without it."""
    if len(shape) > MOST_DIMENSIONS:
        raise FormatError(f"{where}: {len(shape)} dimensions in its shape; expected at most {MOST_DIMENSIONS}")
    if itemsize * math.prod(max(1, size) for size in shape) >= 1 << 63:
        raise FormatError(f"{where}: its shape requires more than 2^63 bytes")


def read_tensors(path):
    """{name: array}; BF16 as its bits, in uint16. Raises FormatError as read_stored() does."""
    return {name: stored.array for name, stored in read_stored(path).items()}


def encode_tensors(tensors):
    """The bytes of a file, with ascending names and no gaps: equal tensors give equal bytes."""
    header, pieces, offset = {}, [], 0
    for name in sorted(tensors, key=str.encode):
        array = np.asarray(tensors[name])
        dtype = array.dtype.newbyteorder("<")
        if dtype not in NAMES:
            raise FormatError(f"{name}: expected an array of {', '.join(map(str, NAMES))}, got {array.dtype}")
        piece = array.astype(dtype, copy=False).tobytes()
        header[name] = {
            "dtype": NAMES[dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + len(piece)],
        }
        offset += len(piece)
        pieces.append(piece)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False, sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(pieces)


def write_tensors(path, tensors):
    """Writes under a temporary name, then renames: a reader sees the whole file or none."""
    folder = os.path.dirname(os.path.abspath(path))
    os.makedirs(folder, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(encode_tensors(tensors))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
