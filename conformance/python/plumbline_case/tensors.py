"""Reads and writes safetensors files, with nothing but torch and the standard library.

Format: 8 bytes little-endian length of the header; the header, a JSON object from name to
{dtype, shape, data_offsets}; the data, row-major, offsets counted from the end of the header.
"""

import json
import os
import struct
import tempfile

import torch

from .schema import FormatError

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
MAX_HEADER = 100_000_000


def is_entry(entry):
    def numbers(value):
        return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)

    return (
        isinstance(entry, dict)
        and entry.keys() == {"dtype", "shape", "data_offsets"}
        and entry["dtype"] in DTYPES
        and numbers(entry["shape"])
        and numbers(entry["data_offsets"])
        and len(entry["data_offsets"]) == 2
    )


def read_tensors(path):
    """{name: tensor}. Raises FormatError for anything but one well-formed file."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        if len(start) < 8:
            raise FormatError(f"{path}: {size} bytes are too few for a safetensors file")
        (length,) = struct.unpack("<Q", start)
        if length > min(size - 8, MAX_HEADER):
            raise FormatError(f"{path}: a header of {length} bytes in a file of {size}")
        try:
            header = json.loads(file.read(length).decode())
        except ValueError as error:
            raise FormatError(f"{path}: the header is not JSON ({error})") from None
        data = bytearray(file.read())
    if not isinstance(header, dict):
        raise FormatError(f"{path}: the header is not an object")
    header.pop("__metadata__", None)
    for name, entry in header.items():
        if not is_entry(entry):
            raise FormatError(f"{path}: {name}: expected a dtype, a shape and data_offsets, got {json.dumps(entry)[:80]}")
    tensors = {}
    used = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
        count = 1
        for n in shape:
            count *= n
        if begin != used or end - begin != count * dtype.itemsize or end > len(data):
            raise FormatError(f"{path}: {name}: data_offsets [{begin}, {end}] do not fit shape {shape} or the file")
        used = end
        if count:
            tensors[name] = torch.frombuffer(data, dtype=dtype, count=count, offset=begin).reshape(shape).clone()
        else:
            tensors[name] = torch.empty(shape, dtype=dtype)
    if used != len(data):
        raise FormatError(f"{path}: {len(data) - used} bytes after the last tensor")
    return tensors


def encode_tensors(tensors):
    """The bytes of a file, with ascending names and no gaps: equal tensors give equal bytes."""
    header, pieces, offset = {}, [], 0
    for name in sorted(tensors, key=str.encode):
        tensor = tensors[name].detach().cpu().contiguous()
        if tensor.dtype not in NAMES:
            raise FormatError(f"{name}: safetensors files cannot contain tensors of {tensor.dtype}")
        piece = tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
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
