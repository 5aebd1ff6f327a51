"""Compares results with the expected results of exact truth: the rules, and the words, of plumbline's own judge."""

import numpy as np

from .number_text import element_bits, element_text, one_line
from .results import parse_key
from .tensors import bf16_to_f32

NOUNS = {
    "partial": "partial gradient", "grad": "gradient", "grad-norm": "norm of all gradients", "param": "parameter",
    "optimizer-state": "optimizer state", "accumulated": "gradient in the hook"
}  # fmt: skip


def differences(expected, found):
    """(key, clause) for each tensor that differs, in causal order. Both arguments are {result key: Stored}.

    Element types and shapes must be equal, and elements as numbers: -0 equals +0, a NaN equals nothing.
    """
    wrong = []
    for text in expected.keys() | found.keys():
        clause = difference(expected.get(text), found.get(text))
        if clause:
            wrong.append((text, clause))
    return sorted(wrong, key=lambda item: parse_key(item[0]).causal_order())


def sentence(key, clause, stages=""):
    """`stages`: those that hold the parameter, "stage 2"."""
    of = f" of {stages}" if stages else ""
    return one_line(f"{place(key)}: {NOUNS.get(key.kind, key.kind)} `{key.name}`{of} {clause}")


def difference(wanted, got):
    """The clause about one tensor; None if it is right."""
    if got is None:
        return f"{form(wanted)} is missing"
    if wanted is None:
        return f"{form(got)} was not expected"
    if wanted.dtype != got.dtype:
        return f"has the wrong dtype: expected {form(wanted)}, got {form(got)}"
    if wanted.array.shape != got.array.shape:
        return f"has the wrong shape: expected {form(wanted)}, got {form(got)}"
    differs = ~np.asarray(values(wanted) == values(got)).reshape(-1)
    if not differs.any():
        return None
    first = int(differs.argmax())
    position = ",".join(map(str, np.unravel_index(first, wanted.array.shape)))
    texts = [element_text(one, first) for one in (wanted, got)]
    if texts[0] == texts[1]:  # two NaNs, say
        texts = [f"{text} ({element_bits(one, first)})" for text, one in zip(texts, (wanted, got))]
    at = f" at [{position}]" if position else ""
    return (
        f"{form(got)} differs in {int(differs.sum())} of {differs.size} elements; "
        f"first{at}: expected {texts[0]}, got {texts[1]}"
    )


def values(stored):
    """The elements as numbers that can be compared."""
    return bf16_to_f32(stored.array) if stored.dtype == "BF16" else stored.array


def form(stored):
    """Element type and shape: "f32[2,8]", "i64[]"."""
    return f"{stored.dtype.lower()}[{','.join(map(str, stored.array.shape))}]"


def place(key):
    stage = "" if key.stage is None else f", stage {key.stage}"
    microbatch = "" if key.microbatch is None else f", micro-batch {key.microbatch}"
    return f"step {key.step}{stage}{microbatch}"
