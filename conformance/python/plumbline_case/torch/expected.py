"""Compares results with expected.safetensors, as expected.json specifies."""

import os

import torch

from ..schema import read_json
from .tensors import read_tensors


def differences(folder, results):
    """One line for each wrong result; [] if all are right."""
    about = read_json(os.path.join(folder, "expected.json"), "expected")
    expected = read_tensors(os.path.join(folder, "expected.safetensors"))
    wanted = {key: value for key, value in expected.items() if not key.endswith((".bound", ".norm"))}
    found = {key: value for key, value in results.items() if about["compare"] != "bounded" or kind(key) in WHOLE}
    lines = [f"{key}: missing" for key in sorted(wanted.keys() - found.keys())]
    lines += [f"{key}: not expected" for key in sorted(found.keys() - wanted.keys())]
    for key in sorted(wanted.keys() & found.keys()):
        wrong = difference(about["compare"], wanted[key], found[key], expected.get(key + ".bound"), expected.get(key + ".norm"))
        if wrong:
            lines.append(f"{key}: {wrong}")
    return lines


WHOLE = {"output", "loss", "input-grad", "grad", "grad-norm", "buffer", "param", "optimizer-state"}


def kind(key):
    return key.split("/")[1]


def difference(compare, wanted, found, bound, norm):
    if wanted.shape != found.shape:
        return f"expected shape {list(wanted.shape)}, got {list(found.shape)}"
    if bound is None:
        if wanted.dtype != found.dtype:
            return f"expected {wanted.dtype}, got {found.dtype}"
        same = bits(wanted) == bits(found) if compare == "bitwise" else wanted == found
        return None if bool(same.all()) else f"differs in {int((~same).sum())} of {same.numel()} elements"
    error = (found.double() - wanted).abs()
    outside = ~(error <= bound)
    if bool(outside.any()):
        return f"{int(outside.sum())} of {outside.numel()} elements are out of their bound"
    limit, floor = norm.tolist()
    allowed = limit * max(float(wanted.norm()), floor)
    return None if float(error.norm()) <= allowed else f"the norm of the error is {float(error.norm())}, allowed {allowed}"


def bits(tensor):
    flat = tensor.contiguous().reshape(-1)
    return flat.view(torch.uint8) if flat.numel() else flat
