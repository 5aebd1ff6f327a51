"""Judges the result files of one run against the expected results of an exact case, as plumbline's own judge does."""

import os
import re
from typing import NamedTuple, Optional

import numpy as np

from .compare import differences, sentence, values
from .likeness import gradient_pattern, likeness, stages_of_parameters, stages_text
from .number_text import one_line, shown
from .regular import size_of
from .results import key as key_text
from .results import parse_key
from .schema import FormatError
from .tensors import Stored, read_stored

# Gradients with a larger fraction of zeros prove too little: most wrong results would look the same.
MOST_ZEROS = 0.75
# A file of results is read whatever the case expects up to this size; a larger one up to so many times the expected bytes,
# since it may have results of kinds that are not compared, and larger elements.
USUAL_BYTES, TIMES_EXPECTED = 1 << 28, 8
MAX_LISTED = 20  # differences in a finding of plumbline's own judge
FAILURES = ("FAIL", "ERROR", "TIMEOUT", "MISTRUSTED", "XPASS")


class Verdict(NamedTuple):
    """`status` as it begins the sentence: "PASS", "FAIL", "NOT JUDGED"; `clause` is the rest of the sentence. `log`: the
    file with what the backend printed, relative to the report folder; empty: none."""

    case: str
    schedule: str
    ranks: int
    transport: str
    status: str
    clause: str = ""
    log: str = ""

    def sentence(self):
        place = f"{self.ranks} rank{'' if self.ranks == 1 else 's'}, {self.transport}"
        head = f"{self.status} {self.case} x {self.schedule} ({place})"
        return shown(f"{head}: {self.clause}" if self.clause else head)

    def is_failure(self):
        return self.status in FAILURES


def judge(case, files, delivers=None, name=str):
    """(status, clause) on the files of all ranks. `delivers`: the kinds of results that are compared; None: all.
    `name`: how an error names a file; rank_of() where its folder is gone when the sentence is read."""
    try:
        ranks = read_ranks(files, name, most_bytes(case, files))
    except FormatError as error:
        return "ERROR", one_line(str(error))
    results, contested = merge(ranks, case)

    def delivered(of_keys):
        return {key: value for key, value in of_keys.items() if delivers is None or parse_key(key).kind in delivers}

    everything, contested = case.expected(), delivered(contested)
    expected, compared = delivered(everything), delivered(results)
    wrong = differences(expected, compared)
    # Of two copies that differ, at least one is wrong: that one is judged, and named.
    of_kept = {key for key, _ in wrong[:MAX_LISTED]}
    if contested:
        compared |= {key: copy.other for key, copy in contested.items() if key not in of_kept}
        compared = {key: stored for key, stored in compared.items() if stored}
        wrong = differences(expected, compared)
    said = failure(wrong, expected, compared, stages_of_parameters(everything), case.microbatches) if wrong else ""
    if contested:
        key = wrong[0][0] if wrong and wrong[0][0] in contested else min(contested, key=str.encode)
        told = contested[key]
        judged = [f"judged: that of {told.kept_from if key in of_kept else told.other_from}"] if told.other else []
        reasons = [told.why, *judged, *name_empty_file(wrong, ranks)]
        return "FAIL", with_reasons(said, reasons)  # also if they are equal as numbers
    if wrong:
        return "FAIL", with_reasons(said, name_empty_file(wrong, ranks))
    if not compared:
        return "SKIPPED", "nothing to compare: the case has no values of the kinds that the backend delivers"
    zeros = zero_fraction(compared)
    if zeros > MOST_ZEROS:
        return "MISTRUSTED", f"agrees, but {int(100 * zeros)} % of all gradients are zero"
    kinds = ", ".join(sorted({parse_key(key).kind for key in compared}))
    return "PASS", f"{len(compared)} tensors ({kinds}) equal"


def with_reasons(said, reasons):
    reason = "; ".join(reasons)
    return one_line(f"{said} [{reason}]" if said and reason else said or reason)


def name_empty_file(wrong, ranks):
    """Results that are missing since a rank has none at all are not to be sought one by one."""
    empty = [rank for rank, results in ranks if not results]
    is_missing = wrong and wrong[0][1].endswith(" is missing")
    return [f"the file of rank {empty[0]} has no tensors"] if is_missing and empty else []


def failure(wrong, expected, results, stages, microbatches):
    """The first difference, the number of others, and what the gradients have in common."""
    text, clause = wrong[0]
    key, more = parse_key(text), len(wrong) - 1
    holders = stages.get(key.name, ()) if key.kind in ("grad", "param") else ()
    instead = likeness(text, expected, results, microbatches)
    instead = f"it is {instead}" if instead else "" if text in expected else missing_instead(text, expected, results)
    said = sentence(key, clause + (f"; {instead}" if instead else ""), stages_text(holders) if holders else "")
    if more:
        said += f" (and {more} more tensor{'s' if more > 1 else ''})"
    pattern = gradient_pattern(expected, results, stages, microbatches)
    return said + (f"; {pattern}" if pattern else "")


def missing_instead(unexpected, expected, results):
    """What an unexpected result probably should have been: the missing key of its kind and name; or that the case has no
    results of its kind. "" without either."""
    meant = parse_key(unexpected)
    if all(parse_key(key).kind != meant.kind for key in expected):
        return f"the case has no results of kind {meant.kind}"
    keys = map(parse_key, expected.keys() - results.keys())
    missing = [key for key in keys if (key.kind, key.name) == (meant.kind, meant.name)]
    differs = lambda key: (key.step != meant.step, key.microbatch != meant.microbatch, key.stage != meant.stage)
    nearest = min(missing, key=lambda key: (differs(key), key.causal_order()), default=None)
    return f"{key_text(*nearest)} is missing" if nearest else ""


def most_bytes(case, files):
    if all(size_of(file) <= USUAL_BYTES for file in files):
        return USUAL_BYTES
    expected = sum(stored.array.nbytes for stored in case.expected().values())
    return max(USUAL_BYTES, TIMES_EXPECTED * expected)


class Contested(NamedTuple):
    """A result that another copy contradicts: at least one of the two is wrong. `other`: that copy; None: it is missing."""

    other: Optional[Stored]
    kept_from: str
    other_from: str
    why: str


def read_ranks(files, name=str, most=USUAL_BYTES):
    """[(rank, {key: Stored})]. Raises FormatError if a file is malformed, is larger than `most` bytes or is no regular
    file."""
    return [(rank_number(file), read_results(file, name, most)) for file in files]


def merge(ranks, case=None):
    """({key: Stored} of all ranks, {key: Contested}): contested is a result that ranks have with different values, that a
    holder of its parameter lacks, or that one replica of the case lacks and another one has."""
    merged, sources, contested = {}, {}, {}
    for rank, results in ranks:
        for key, stored in results.items():
            if same_bytes(merged.setdefault(key, stored), stored):
                sources.setdefault(key, f"rank {rank}")
                continue
            why = f"{sources[key]} and rank {rank} disagree on {key} (copies of one tensor must be equal)"
            contested.setdefault(key, Contested(stored, sources[key], f"rank {rank}", why))
    # A rank that delivers a parameter has a copy of it, and must deliver every gradient that another copy has.
    copies = [(rank, results, {k.name for k in map(parse_key, results) if k.kind == "param"}) for rank, results in ranks]
    for key, parsed in ((key, parse_key(key)) for key in merged):
        if parsed.kind != "grad":
            continue
        for rank, results, parameters in copies:
            if parsed.name in parameters and key not in results:
                why = f"rank {rank} has a copy of {parsed.name} but lacks {key}, which another rank has"
                contested.setdefault(key, Contested(None, "", "", why))
    if case is not None and case.replicas > 1:
        for key, why in lacking_in_a_replica(ranks, merged, case):
            contested.setdefault(key, Contested(None, "", "", why))
    return merged, contested


def lacking_in_a_replica(ranks, merged, case):
    """(key, why): a replica that lost a result would hide behind the others, which have the same."""
    size = case.pipeline_ranks
    for key in merged:
        if parse_key(key).kind not in ("grad", "grad-norm", "param", "optimizer-state"):
            continue
        for replica in range(case.replicas):
            if any(rank // size == replica and key in results for rank, results in ranks):
                continue
            first, last = replica * size, (replica + 1) * size - 1
            place = f"rank {first}" if first == last else f"ranks {first} to {last}"
            yield key, f"replica {replica} ({place}) lacks {key}, which another replica has"


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
    except OSError as error:
        raise FormatError(f"cannot read {name(file)}: {error.strerror}") from None


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
