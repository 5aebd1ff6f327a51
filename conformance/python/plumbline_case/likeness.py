"""What a wrong value resembles: the rules, and the words, of plumbline's own judge in exact truth (judge/likeness.h)."""

from math import inf, isfinite, sqrt

import numpy as np

from .compare import difference, values
from .results import parse_key

LARGEST_TERM, LARGEST_TERM_OF_FEW = 64, 4
ROUNDINGS = 8
UNIT_ROUNDOFF = {"F64": 2.0**-53, "F32": 2.0**-24, "F16": 2.0**-11, "BF16": 2.0**-8}
LARGEST_POWER = 4096  # of n and 1/n
FEW_ELEMENTS = 4
FLOATING = ("F64", "F32", "F16", "BF16")


def factor_between(wanted, got):
    """(p, q) if every element is p/q times the expected one, exactly or else up to a few roundings, in lowest terms; None:
    no such factor with small terms."""
    if wanted.dtype not in FLOATING or wanted.dtype != got.dtype or wanted.array.shape != got.array.shape:
        return None
    expected, actual = (values(stored).astype(np.float64).reshape(-1) for stored in (wanted, got))
    nonzero = np.count_nonzero(expected)
    if nonzero == 0:
        return None if np.count_nonzero(actual) else (1, 1)
    largest = int(np.abs(expected).argmax())
    with np.errstate(all="ignore"):
        ratio = float(actual[largest] / expected[largest])
    if not isfinite(ratio):
        return None
    if np.count_nonzero(actual) == 0:
        return 0, 1

    few = nonzero < FEW_ELEMENTS
    most = (LARGEST_TERM_OF_FEW, LARGEST_TERM) if few else (LARGEST_TERM, LARGEST_POWER)
    magnitude = float(np.abs(expected[largest]))
    for tolerance in 0.0, ROUNDINGS * UNIT_ROUNDOFF[wanted.dtype] * magnitude:
        factor = factor_within(expected, actual, ratio, tolerance, magnitude, *most)
        if factor:
            return factor
    return None


def factor_within(expected, actual, ratio, tolerance, magnitude, term, power):
    """Terms that the tolerance cannot tell apart are not tried: fractions with denominators up to n are 1/n^2 apart."""
    resolved = magnitude / (8 * tolerance) if tolerance else inf
    term, power = min(term, sqrt(resolved)), min(power, resolved)

    def fits(p, q):
        with np.errstate(all="ignore"):
            return bool(np.all(np.abs(actual * q - expected * p) <= tolerance * abs(p)))

    q = 1
    while q <= term:
        p = float(np.rint(ratio * q))
        if p != 0 and abs(p) <= (power if q == 1 else term) and fits(p, q):
            return int(p), q
        q += 1
    with np.errstate(all="ignore"):
        inverse = float(np.rint(np.float64(1) / ratio))
    if term < abs(inverse) <= power and fits(np.sign(inverse), abs(inverse)):
        return int(np.sign(inverse)), int(abs(inverse))
    return None


def power_of(number, base):
    """k if number is base^k and k > 0; otherwise 0."""
    k = 0
    while base > 1 and number > 1 and number % base == 0:
        number, k = number // base, k + 1
    return k if number == 1 else 0


def factor_text(factor, microbatches):
    p, q = factor
    text = f"{p} times what is expected" if q == 1 else f"{p}/{q} of what is expected"
    k = power_of(p if q == 1 else q, microbatches)
    if k == 0 or (q != 1 and p != 1):
        return text
    power = ("" if q == 1 else "1/") + ("M" if k == 1 else f"M^{k}") + ", "
    return f"{text} ({'' if power == 'M, ' else power}M = {microbatches} micro-batches)"


def nearness(key, other):
    """Sorts the tensors that a value may be instead; None: not a candidate."""
    if other.kind != key.kind or other == key:
        return None
    same_tensor = (other.name, other.stage) == (key.name, key.stage)
    if not same_tensor and (other.microbatch, other.step) != (key.microbatch, key.step):
        return None
    if not same_tensor:
        rank = 3 if other.name == key.name else 4
    elif other.step == key.step:
        rank = 0
    else:
        rank = 1 if other.microbatch == key.microbatch else 2
    number = lambda n: -1 if n is None else n
    return rank, other.step, number(other.microbatch), number(other.stage), other.name.encode()


def whose(key, other):
    if other.name != key.name:
        return f"`{other.name}`'s"
    if other.stage != key.stage:
        return f"stage {other.stage}'s"
    if other.step == key.step:
        return f"micro-batch {other.microbatch}'s"
    if other.microbatch == key.microbatch:
        return f"step {other.step}'s"
    return f"that of micro-batch {other.microbatch} in step {other.step}"


def likeness(text, expected, found, microbatches):
    """What the wrong tensor under the key is instead; "" if it resembles nothing."""
    key, wanted, got = parse_key(text), expected.get(text), found.get(text)
    if wanted is None or got is None or wanted.dtype != got.dtype or wanted.array.shape != got.array.shape:
        return ""
    if np.count_nonzero(values(got)) == 0:
        return "zero"
    near = []
    for other_text, stored in expected.items():
        if stored.array.shape == got.array.shape:
            other = parse_key(other_text)
            how = nearness(key, other)
            if how and difference(stored, got) is None:
                near.append((how, whose(key, other)))
    if near:
        return min(near)[1]
    factor = factor_between(wanted, got)
    return factor_text(factor, microbatches) if factor and factor != (1, 1) else ""


def stages_text(stages):
    return f"stage{'' if len(stages) == 1 else 's'} {', '.join(map(str, stages))}"


def stages_of_parameters(expected):
    """{name: (stage, ...)}: those that have a partial gradient of it."""
    stages = {}
    for key in map(parse_key, expected):
        if key.kind == "partial":
            stages.setdefault(key.name, set()).add(key.stage)
    return {name: tuple(sorted(of)) for name, of in stages.items()}


def gradient_pattern(expected, found, stages, microbatches):
    """One clause about the first step that has wrong gradients; "" if there is none, or if gradients are missing."""
    steps, wrong = {}, inf
    for text, wanted in expected.items():
        key = parse_key(text)
        if key.kind != "grad" or wanted.dtype not in FLOATING:
            continue
        got = found.get(text)
        if got is None:
            return ""
        equal = difference(wanted, got) is None
        if not equal:
            wrong = min(wrong, key.step)
        elif np.count_nonzero(values(wanted)) == 0:
            continue  # has every factor
        factor = (1, 1) if equal else factor_between(wanted, got)
        steps.setdefault(key.step, {}).setdefault(stages.get(key.name, ()), set()).add(factor)
    if wrong == inf:
        return ""
    groups = steps[wrong]
    single = {of: next(iter(factors)) if len(factors) == 1 else None for of, factors in groups.items()}
    factors = set(single.values())
    if factors == {(1, 1)}:
        return "the gradients differ by a few roundings only"
    if len(factors) == 1 and factors != {None}:
        return f"every gradient is {factor_text(factors.pop(), microbatches)}"
    if factors == {None}:
        return "no single factor explains the gradients"
    parts = []
    for of, factor in sorted(single.items()):
        where = f"on {stages_text(of)}" if of else "elsewhere"
        if factor is None:
            parts.append(f"off by no single factor {where}")
        else:
            parts.append(f"{'right' if factor == (1, 1) else factor_text(factor, microbatches)} {where}")
    return f"the gradients are {', '.join(parts)}"
