"""Which results must be equal, and whether they are."""

from collections import Counter, namedtuple

import numpy as np

from second_opinion.elements import Leaf, parts_of
from second_opinion.term_file import key_of, words_of

# Two arrays of elements that must be equal; None is a result that is not there.
Pair = namedtuple("Pair", "key wanted found")
# `outcome` is one below, or "times FACTOR" where every element that differs is proven to be this multiple of the
# expected one. `elements` counts them by what they are; `why` tells of the first that is not confirmed.
Verdict = namedtuple("Verdict", "outcome results elements why")

CONFIRMED, REFUTED, UNDECIDED = "confirmed", "refuted", "undecided"


def with_unsplit(file, tensors):
    """Each result of a run with that of the unsplit model, micro-batch by micro-batch."""
    array = lambda term: tensors[term].elements
    for key, (wanted, *_) in file.expected.items():
        delivered = file.found.get(key)
        if not delivered:
            yield Pair(key, array(wanted), None)
        for found in delivered or ():
            yield Pair(key, array(wanted), array(found))
    for key in file.found.keys() - file.expected.keys():
        yield Pair(key, None, array(file.found[key][0]))


def with_whole_batch(whole, whole_tensors, file, tensors):
    """Each gradient, parameter, buffer and state of the optimizer with that of the whole batch, and the outputs that
    have a row for each row of the batch. What a loss of a micro-batch counts for shows in the gradients."""
    for key, (term, *_) in whole.expected.items():
        step, kind, stage, microbatch, name = key_of(key)
        wanted = whole_tensors[term].elements
        if microbatch == "-":
            delivered = [tensors[found].elements for found in file.found.get(key, [])]
            for found in delivered or [None]:
                yield Pair(key, wanted, found)
        elif kind == "output" and wanted.ndim:
            keys = [f"{step}/{kind}/{stage}/{m}/{name}" for m in range(file.microbatches)]
            rows = [tensors[file.found[key][0]].elements for key in keys if key in file.found]
            if sum(part.shape[:1] and part.shape[0] for part in rows) == wanted.shape[0]:
                yield Pair(key, wanted, np.concatenate(rows))


class Judge:
    def __init__(self, elements, values, sweep):
        self._elements, self._values, self._sweep = elements, values, sweep

    def verdict(self, pairs):
        results, counts, firsts, ratios = 0, Counter(), {}, Counter()
        for pair in pairs:
            results += 1
            if pair.wanted is None or pair.found is None or pair.wanted.shape != pair.found.shape:
                counts[REFUTED] += 1
                ratios[None] += 1
                shapes = f"{shape_text(pair.wanted)}, found {shape_text(pair.found)}"
                firsts.setdefault(REFUTED, f"{words_of(pair.key)}: {shapes}")
                continue
            for place in np.ndindex(pair.wanted.shape):
                what, why = self._compare(pair.wanted[place], pair.found[place])
                counts[what] += 1
                if what == REFUTED:
                    ratios[self._sweep.ratio(pair.found[place], pair.wanted[place])] += 1
                firsts.setdefault(what, f"{words_of(pair.key)}, element {list(place)}: {why}")
        outcome = next((outcome for outcome in (REFUTED, UNDECIDED) if outcome in firsts), CONFIRMED)
        if outcome == REFUTED and UNDECIDED not in firsts and len(ratios) == 1 and None not in ratios:
            outcome = f"times {min(ratios)}"
        why = firsts.get(REFUTED, firsts.get(UNDECIDED, ""))
        return Verdict(outcome, results, counts, why)

    def _compare(self, wanted, found):
        if wanted == found:
            return "same expression", ""
        if self._sweep.are_equal(wanted, found):
            return "proven", ""
        numbers = next(((w, f) for w, f in zip(self._values[wanted], self._values[found]) if w != f), None)
        if numbers is None:
            return UNDECIDED, "equal at random numbers, and Z3 does not prove it"
        text = "expected {}, found {}, at random numbers".format(*map(number_text, numbers))
        fixed = self._fixed_parts([wanted, found])
        return (UNDECIDED, f"{text} and for any {fixed}") if fixed else (REFUTED, text)

    def _fixed_parts(self, numbers):
        """What has only one content, so that random numbers show nothing; empty if there is no such thing."""
        open_numbers, seen = list(numbers), set()
        while open_numbers:
            number = open_numbers.pop()
            if number in seen:
                continue
            seen.add(number)
            definition = self._elements.definitions[number]
            if isinstance(definition, Leaf):
                if definition.constant:
                    return definition.name
                continue
            named, unknown = parts_of(definition)
            if unknown:
                return f"function {min(unknown)}"
            open_numbers += named
        return ""


def shape_text(array):
    return "nothing" if array is None else f"sizes {list(array.shape)}"


def number_text(number):
    text = str(number)
    return text if len(text) < 16 else f"{float(number):.10g}"
