"""Files of `plumbline prove --terms`."""

import json
from collections import namedtuple

from second_opinion.errors import Unsupported

FORMAT = "plumbline-terms/1"

# `kind` is an operator or a kind of leaf; `operands` are numbers of earlier terms.
Term = namedtuple("Term", "kind attributes operands")
# One run. `expected` and `found` are {key of a result: numbers of terms}: of the unsplit model, and of each rank of the
# pipelined engine that delivered the result.
TermFile = namedtuple("TermFile", "case schedule ranks microbatches terms expected found")


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except (OSError, ValueError) as error:
        raise Unsupported(f"{path}: {error}; expected a file of `plumbline prove --terms`") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise Unsupported(f"{path}: not a file of `plumbline prove --terms` in the format {FORMAT}")
    heads = content["heads"]
    terms = [Term(*heads[head], tuple(operands)) for head, *operands in content["terms"]]
    for number, term in enumerate(terms):
        if any(operand >= number for operand in term.operands):
            raise Unsupported(f"{path}: term {number} comes before one of its operands; expected operands first")
    about = [content[name] for name in ("case", "schedule", "ranks", "microbatches")]
    return TermFile(*about, terms, content["expected"], content["found"])


def key_of(text):
    """(step, kind, stage, micro-batch, name) of a result, as texts."""
    return tuple(text.split("/", 4))


def words_of(text):
    step, kind, _, microbatch, name = key_of(text)
    of = "" if microbatch == "-" else f", micro-batch {microbatch}"
    return f"{kind} {name} of step {step}{of}"
