"""Judges the result files of one run against the expected results of an exact case, as plumbline's own judge does."""

import os
import re
from typing import NamedTuple

import numpy as np

from .compare import differences, sentence, values
from .likeness import gradient_pattern, likeness, stages_of_parameters, stages_text
from .number_text import one_line
from .results import parse_key
from .schema import FormatError
from .tensors import read_stored

# Gradients with a larger fraction of zeros prove too little: most wrong results would look the same.
MOST_ZEROS = 0.75
# A file of results is read whatever the case expects up to this size; a larger one up to so many times the expected bytes,
# since it may have results of kinds that are not compared, and larger elements.
USUAL_BYTES, TIMES_EXPECTED = 1 << 28, 8
FAILURES = ("FAIL", "ERROR", "TIMEOUT", "MISTRUSTED", "XPASS")


class Verdict(NamedTuple):
    """`status` as it begins the sentence: "PASS", "FAIL", "NOT JUDGED"; `clause` is the rest of the sentence."""

    case: str
    schedule: str
    ranks: int
    transport: str
    status: str
    clause: str = ""

    def sentence(self):
        place = f"{self.ranks} rank{'' if self.ranks == 1 else 's'}, {self.transport}"
        head = f"{self.status} {self.case} x {self.schedule} ({place})"
        return one_line(f"{head}: {self.clause}" if self.clause else head)

    def is_failure(self):
        return self.status in FAILURES


def judge(case, files, delivers=None, name=str):
    """(status, clause) on the files of all ranks. `delivers`: the kinds of results that are compared; None: all.
    `name`: how an error names a file; rank_of() where its folder is gone when the sentence is read."""
    try:
        results = merge(files, name, most_bytes(case, files), case)
    except FormatError as error:
        return "ERROR", one_line(str(error))

    def delivered(tensors):
        return {key: stored for key, stored in tensors.items() if delivers is None or parse_key(key).kind in delivers}

    everything = case.expected()
    expected, results = delivered(everything), delivered(results)
    wrong = differences(expected, results)
    if wrong:
        return "FAIL", failure(wrong, expected, results, stages_of_parameters(everything), case.microbatches)
    zeros = zero_fraction(results)
    if zeros > MOST_ZEROS:
        return "MISTRUSTED", f"agrees, but {int(100 * zeros)} % of all gradients are zero"
    kinds = ", ".join(sorted({parse_key(key).kind for key in results}))
    return "PASS", f"{len(results)} tensors" + (f" ({kinds})" if kinds else "") + " equal"


def failure(wrong, expected, results, stages, microbatches):
    """The first difference, the number of others, and what the gradients have in common."""
    text, clause = wrong[0]
    key, more = parse_key(text), len(wrong) - 1
    holders = stages.get(key.name, ()) if key.kind in ("grad", "param") else ()
    instead = likeness(text, expected, results, microbatches)
    said = sentence(key, clause + (f"; it is {instead}" if instead else ""), stages_text(holders) if holders else "")
    if more:
        said += f" (and {more} more tensor{'s' if more > 1 else ''})"
    pattern = gradient_pattern(expected, results, stages, microbatches)
    return said + (f"; {pattern}" if pattern else "")


def most_bytes(case, files):
    if all(os.lstat(file).st_size <= USUAL_BYTES for file in files if os.path.lexists(file)):
        return USUAL_BYTES
    expected = sum(stored.array.nbytes for stored in case.expected().values())
    return max(USUAL_BYTES, TIMES_EXPECTED * expected)


def merge(files, name=str, most=USUAL_BYTES, case=None):
    """{key: Stored} of all ranks. Raises FormatError if a file is malformed, is larger than `most` bytes or is no regular
    file, if ranks contradict each other, or if a replica of the case lacks a result that another replica has."""
    ranks = [(name(file), read_results(file, name, most)) for file in files]
    merged = {}
    for file, results in ranks:
        for key, stored in results.items():
            if not same_bytes(merged.setdefault(key, stored), stored):
                raise FormatError(f"{file}: ranks disagree on {key} (copies of one tensor must be equal)")
    # A rank that delivers a parameter has a copy of it, and must deliver every gradient that another copy has.
    for key in sorted(merged, key=str.encode):
        parsed = parse_key(key)
        if parsed.kind != "grad":
            continue
        for file, results in ranks:
            if key not in results and any(k.kind == "param" and k.name == parsed.name for k in map(parse_key, results)):
                raise FormatError(f"{file}: has a copy of {parsed.name} but lacks {key}, which another rank has")
    if case is not None and case.replicas > 1:
        of_rank = [(rank_number(file), results) for file, (_, results) in zip(files, ranks)]
        expect_results_of_all_replicas(of_rank, merged, case)
    return merged


def expect_results_of_all_replicas(ranks, merged, case):
    """A replica that lost a result would hide behind the others, which have the same."""
    size = case.pipeline_ranks
    for key in sorted(merged, key=str.encode):
        if parse_key(key).kind not in ("grad", "grad-norm", "param", "optimizer-state"):
            continue
        for replica in range(case.replicas):
            if any(rank // size == replica and key in results for rank, results in ranks):
                continue
            first, last = replica * size, (replica + 1) * size - 1
            place = f"rank {first}" if first == last else f"ranks {first} to {last}"
            raise FormatError(f"replica {replica} ({place}) lacks {key}, which another replica has")


def rank_number(file):
    """The number in the name of a rank's file, PREFIX12.safetensors."""
    digits = re.search(r"(\d+)\.safetensors$", os.path.basename(file))
    return int(digits[1]) if digits else 0


def read_file(file, name=str, most=USUAL_BYTES):
    try:
        return read_stored(file, most, follow=False)
    except FileNotFoundError:
        raise FormatError(f"no results in {name(file)}") from None
    except FormatError as error:  # which begins with the file
        raise FormatError(name(file) + str(error).removeprefix(file)) from None


def read_results(file, name=str, most=USUAL_BYTES):
    results = read_file(file, name, most)
    for key in results:
        try:
            parse_key(key)
        except ValueError as error:
            raise FormatError(f"{name(file)}: {error}") from None
    return results


def rank_of(file):
    """ "rank 0" of .../rank0.safetensors"""
    return re.sub(r"^rank(\d+)\.safetensors$", r"rank \1", os.path.basename(file))


def same_bytes(a, b):
    return a.dtype == b.dtype and a.array.shape == b.array.shape and a.array.tobytes() == b.array.tobytes()


def zero_fraction(results):
    """The fraction of zeros among all elements of the kinds backward and grad."""
    gradients = [values(stored) for key, stored in results.items() if parse_key(key).kind in ("backward", "grad")]
    elements = sum(array.size for array in gradients)
    return sum(array.size - np.count_nonzero(array) for array in gradients) / elements if elements else 0.0
