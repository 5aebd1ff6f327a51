"""Compares what the ranks of an engine computed with the unsplit model's terms."""

from dataclasses import dataclass, field
from functools import partial

from ..results import parse_key
from .blame import Blame
from .recorder import Log
from .sums import Difference, NormalForms, factor_between, sums_text
from .terms import Terms

COMPARED = ("output", "loss", "input-grad", "grad", "buffer", "param", "optimizer-state")


@dataclass
class Run:
    """What one rank, or the unsplit run, computed: its results, as terms and as digests of their numbers, by key; all terms by
    identity, and a log."""

    results: dict
    numbers: dict
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
    read_numbers: list = field(default_factory=list)  # operators that gave numbers to the program
    constants: list = field(default_factory=list)  # what the results take by content
    repeated: dict = field(default_factory=dict)  # {operator: how many executions of it the unsplit run does not have}


def result_text(key):
    parsed = parse_key(key)
    of = "" if parsed.microbatch is None else f" of micro-batch {parsed.microbatch}"
    return f"{parsed.kind} {parsed.name}{of} of step {parsed.step}"


def _numbers_text(differ, lost, expected, ranks):
    """The last resort: what of this the numbers of this run show. `lost`: the results that a rank lacks and another one has."""

    def differs(key):
        is_missing = key in lost or all(key not in rank.numbers for rank in ranks)
        return is_missing or any(rank.numbers.get(key) not in (None, expected.numbers.get(key)) for rank in ranks)

    count = sum(differs(difference.key) for difference in differ)
    return f"the numbers of {count} of {len(differ)} differ" if count else "their numbers are equal"


def _lost_copies(ranks):
    """{key of a gradient: what to say of it} where a rank has a copy of the parameter but, unlike another rank, no gradient."""
    parsed = {key: parse_key(key) for rank in ranks for key in rank.results}
    holds = [{parsed[key].name for key in rank.results if parsed[key].kind == "param"} for rank in ranks]
    lost = {}
    for key, (_, kind, _, _, name) in parsed.items():
        for number, rank in enumerate(ranks):
            if kind == "grad" and name in holds[number] and key not in rank.results:
                lost.setdefault(key, f"rank {number} has a copy of {name} but lacks {key}, which another rank has")
    return lost


def gravity(difference):
    """Another sum comes before a multiple, and that before the same sum in another order."""
    return difference.factor is not None, difference.factor == 1


def _constants(results, terms):
    """The leaves without a name below the results: what a proof takes by content."""
    found, open_, seen = [], list(results), set()
    while open_:
        one = open_.pop()
        if one not in seen:
            seen.add(one)
            open_ += terms[one].operands
            if terms[one].op == "constant":
                found.append(terms[one].attributes.partition(" ")[0])
    return sorted(found)


def compare(expected, ranks, kinds, claim):
    """The proof of a run: `kinds` are the kinds of results that the engine delivers, `claim` is "computation" or "sum"."""
    merged, log = Terms(), Log()
    for run in (expected, *ranks):
        merged.update(run.terms)
        merged.values |= run.terms.values
    for rank in ranks:
        log.merge(rank.log)
    wanted = {key: term for key, term in expected.results.items() if parse_key(key).kind in kinds}
    proof = Proof(results=wanted, operators=sorted(log.operators), read_numbers=sorted(log.read_numbers))
    proof.constants = _constants(wanted.values(), merged)
    forms = NormalForms(merged)
    blame = Blame(merged, forms, expected.log, log)

    lost, whys = _lost_copies(ranks), {}  # by key of a result: (Difference, what to say of it), the gravest of all ranks

    def differs(difference, why):
        if difference.key not in whys or gravity(difference) < gravity(whys[difference.key][0]):
            whys[difference.key] = difference, why

    for key in sorted(wanted, key=lambda key: parse_key(key).causal_order()):
        found = [rank.results[key] for rank in ranks if key in rank.results]
        for term in found:
            if term != wanted[key]:
                factor = factor_between(forms, wanted[key], term)
                stage = blame.place_of(term).stage
                differs(Difference(key, factor, stage), partial(blame.between, wanted[key], term))
        if not found:
            differs(Difference(key), lambda: "no rank delivered it")
        if key in lost:
            differs(Difference(key), partial(lost.get, key))
    for key in sorted({key for rank in ranks for key in rank.results} - expected.results.keys()):
        differs(Difference(key), lambda: "the unsplit run has no such result")
    proof.differ = [difference for difference, _ in whys.values()]
    against = [d for d in proof.differ if claim == "computation" or d.factor != 1]
    if against:
        worst = min(against, key=gravity)  # the first of the gravest kind
        sums, numbers = sums_text(proof.differ), _numbers_text(proof.differ, lost, expected, ranks)
        proof.outcome = "refuted"
        why = whys[worst.key][1]()
        proof.why = f"{result_text(worst.key)}: {why}; as sums, of the results that differ: {sums}; {numbers}"
    elif not wanted:
        proof.outcome, proof.why = "stopped", "the engine delivers none of the results that a proof compares"
    for term, times in log.times.items():
        if times > (own := expected.log.times.get(term, times)):
            proof.repeated[merged[term].op] = proof.repeated.get(merged[term].op, 0) + times - own
    return proof
