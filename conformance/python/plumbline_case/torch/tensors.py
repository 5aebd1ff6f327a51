"""Tensors of torch, from and to safetensors files."""

import torch

from .. import results, tensors

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
    "C64": torch.complex64,  # between and within stages; no file has complex numbers
    "C128": torch.complex128,
}


def to_torch(stored):
    """A copy on torch's default device, in memory that torch allocated: kernels may use other instructions on memory that
    is aligned otherwise."""
    array = stored.array.view("<i2") if stored.dtype == "BF16" else stored.array
    tensor = torch.from_numpy(array).to(torch.get_default_device(), copy=True)
    return tensor.view(torch.bfloat16) if stored.dtype == "BF16" else tensor


def to_numpy(tensor):
    tensor = tensor.detach().cpu().contiguous()
    return tensor.view(torch.int16).numpy().view("<u2") if tensor.dtype == torch.bfloat16 else tensor.numpy()


def in_pairs(tensor):
    """Complex numbers as pairs of real ones along a new last dimension, as results hold them."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def read_tensors(path):
    """{name: tensor}. Raises FormatError for anything but one well-formed file."""
    return {name: to_torch(stored) for name, stored in tensors.read_stored(path).items()}


def write_tensors(path, named):
    """Writes under a temporary name, then renames: a reader sees the whole file or none."""
    tensors.write_tensors(path, {name: to_numpy(tensor) for name, tensor in named.items()})


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and to_numpy(a).tobytes() == to_numpy(b).tobytes()


class Results(results.Results):
    """{key: tensor}; put() copies the present values, once for each key; again only with the same bits, as of a hook that is
    called twice, or of a parameter of which a rank has two copies."""

    def put(self, step, kind, stage, microbatch, name, tensor):
        text, copy = results.key(step, kind, stage, microbatch, name), in_pairs(tensor.detach()).clone()
        if text in self and not same_bits(self[text], copy):
            raise ValueError(f"result {text} is put twice, with other bits")
        self[text] = copy

    def write(self, path):
        """Writes the file atomically."""
        write_tensors(path, self)
