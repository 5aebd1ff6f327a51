"""Runs an engine on one rank, or the unsplit model, while a recorder gives every value its term."""

import contextlib
import os

from ..case import Case as AnyCase
from ..results import parse_key
from ..schema import read_json
from ..torch.case import Case
from .memory import digest_of
from .messages import Carrier, carried
from .proof import COMPARED, Run
from .recorder import Recorder
from .terms import Terms
from .unsplit import Unsplit


def watch_rank(backend, folder, rank, messages):
    """The Run of this rank of an engine; `messages` is a folder that the ranks of this run share."""
    recorder = Recorder(Terms())
    with named_leaves(recorder), carried(Carrier(messages, rank, recorder.memory), recorder.memory), recorder:
        case = AnyCase(folder)
        return _run(recorder, backend.run(case, backend.prepare(case)))


def watch_unsplit(folder):
    recorder = Recorder(Terms())
    with named_leaves(recorder), recorder:
        return _run(recorder, Unsplit(Case(folder)).run())


def _run(recorder, results):
    compared = {key: x for key, x in results.items() if parse_key(key).kind in COMPARED}
    found = {key: recorder.term_of(x) for key, x in compared.items()}
    numbers = {key: digest_of(x) for key, x in compared.items()}
    return Run(found, numbers, recorder.terms, recorder.take_log())


@contextlib.contextmanager
def named_leaves(recorder):
    """What a case reads from its file of tensors are leaves."""
    read = Case.read_tensors

    def read_leaves(path):
        tensors = read(path)
        case = read_json(os.path.join(os.path.dirname(path), "case.json"), "case")
        names = {"input": [entry["name"] for entry in case["inputs"]], "target": case["loss"].get("outputs", [])}
        for key, tensor in tensors.items():
            recorder.name_leaf(tensor, *kind_and_name(key, names))
        return tensors

    Case.read_tensors = staticmethod(read_leaves)
    try:
        yield
    finally:
        Case.read_tensors = staticmethod(read)


def kind_and_name(key, numbered):
    """("input", "0 of step 0") of "step/0/input/x", as conformance/proof names it; INTERPRETING.md has the keys. `numbered`:
    {"input": the names of the case's inputs, "target": those of its targets if there are several}, in order."""
    kind, _, rest = key.partition("/")
    if kind != "step":
        return kind, rest
    step, kind, *names = rest.split("/", 4 if "/mask/" in key else 3)
    if kind == "mask":
        return kind, f"{names[2]} of stage {names[0]}, micro-batch {names[1]}, step {step}"
    of = f"of step {step}"
    order = numbered[kind]
    if names[bool(order) :]:  # given by micro-batch
        of = f"micro-batch {names[-1]} {of}"
    return kind, f"{order.index(names[0])}{',' if names[1:] else ''} {of}" if order else of
