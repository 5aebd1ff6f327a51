"""Compares what the ranks of an engine computed with the unsplit model's terms."""

from dataclasses import dataclass, field

from ..results import parse_key
from .blame import Blame
from .recorder import Log
from .sums import Difference, NormalForms, factor_between, sums_text
from .terms import Terms

COMPARED = ("output", "loss", "input-grad", "grad", "buffer", "param", "optimizer-state")


@dataclass
class Run:
    """What one rank, or the unsplit run, computed: the terms of its results by key, all terms by identity, and a log."""

    results: dict
    terms: Terms
    log: Log


@dataclass
class Proof:
    """`why`: one line; empty if proven."""

    outcome: str = "proven"
    why: str = ""
    results: dict = field(default_factory=dict)  # the expected terms
    differ: list = field(default_factory=list)  # of Difference, in the order in which a run produces the results
    operators: list = field(default_factory=list)
    repeated: dict = field(default_factory=dict)  # {operator: how many executions of it the unsplit run does not have}


def result_text(key):
    parsed = parse_key(key)
    of = "" if parsed.microbatch is None else f" of micro-batch {parsed.microbatch}"
    return f"{parsed.kind} {parsed.name}{of} of step {parsed.step}"


def compare(expected, ranks, kinds, claim):
    """The proof of a run: `kinds` are the kinds of results that the engine delivers, `claim` is "computation" or "sum"."""
    merged, log = Terms(), Log()
    for run in (expected, *ranks):
        merged.update(run.terms)
    for rank in ranks:
        log.merge(rank.log)
    wanted = {key: term for key, term in expected.results.items() if parse_key(key).kind in kinds}
    proof = Proof(results=wanted, operators=sorted(log.operators))
    forms, blame = NormalForms(merged), Blame(merged, expected.log, log)

    def differs(difference, why):
        if not (claim == "sum" and difference.factor == 1) and not proof.why:
            proof.why = f"{result_text(difference.key)}: {why()}"
        if all(known.key != difference.key for known in proof.differ):
            proof.differ.append(difference)

    for key in sorted(wanted, key=lambda key: parse_key(key).causal_order()):
        found = [rank.results[key] for rank in ranks if key in rank.results]
        for term in found:
            if term != wanted[key]:
                place = log.first.get(term)
                factor = factor_between(forms, wanted[key], term)
                differs(Difference(key, factor, place and place.stage), lambda: blame.between(wanted[key], term))
        if not found:
            differs(Difference(key), lambda: "no rank delivered it")
    for key in sorted({key for rank in ranks for key in rank.results} - expected.results.keys()):
        differs(Difference(key), lambda: "the unsplit run has no such result")
    if proof.why:
        proof.outcome = "refuted"
        proof.why += f"; as sums, of the results that differ: {sums_text(proof.differ)}"
    for term, times in log.times.items():
        if times > (own := expected.log.times.get(term, times)):
            proof.repeated[merged[term].op] = proof.repeated.get(merged[term].op, 0) + times - own
    return proof
