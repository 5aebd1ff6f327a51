"""The words that the attributes of a Backend may have. A misspelt one would decline cases, or accept them, in silence."""

import difflib
import json
import os
import re

from .case import EXTRAS, GIVENS
from .corpus import near_names
from .schema import FOLDER, HERE, FormatError

LIKE = 0.88  # how near an unknown attribute is to one of Backend if it was probably meant to be that one
# Of the public attributes of Backend those that no class sets.
OF_THE_JOB = ("rank", "world_size", "timeout")


def schema_of_case():
    with open(os.path.join(FOLDER, "case.schema.json"), encoding="utf-8") as file:
        return json.load(file)["properties"]


def steps():
    kinds = (form["properties"]["kind"] for form in schema_of_case()["steps"]["items"]["oneOf"])
    return [word for kind in kinds for word in kind.get("enum", [kind.get("const")])]


def operators():
    """Those of the opset in INTERPRETING.md."""
    places = (os.path.join(HERE, "INTERPRETING.md"), os.path.join(HERE, "..", "..", "INTERPRETING.md"))
    with open(next(filter(os.path.exists, places)), encoding="utf-8") as page:
        return re.findall(r"^\| `(\w+::[\w.]+)` \|", page.read(), re.MULTILINE)


WORDS = {
    "steps": steps,
    "operators": operators,
    "losses": lambda: schema_of_case()["loss"]["properties"]["kind"]["enum"],
    "dtypes": lambda: schema_of_case()["dtype"]["enum"],
    "extras": lambda: EXTRAS,
    "givens": lambda: GIVENS,
}


def check_attributes(backend, base):
    """Raises FormatError, in one line with the nearest words, for a word that means nothing in an attribute of the backend,
    and for an attribute that its class adds to those of `base` and that is nearly one of them."""
    own = type(backend).__name__
    for attribute, words in WORDS.items():
        given = getattr(backend, attribute)
        for word in () if given is None else [given] if isinstance(given, str) else given:
            if word not in (accepted := words()):
                nearest = ", ".join(near_names(accepted, str(word)))
                raise FormatError(f"{own}.{attribute}: '{word}' is none of the {len(accepted)} words; nearest: {nearest}")
    known = {name for name, value in vars(base).items() if not (name.startswith("_") or callable(value))}
    for name in dict.fromkeys(name for of in type(backend).__mro__ if of not in base.__mro__ for name in vars(of)):
        if name.startswith("_") or hasattr(base, name) or callable(getattr(backend, name)):
            continue
        if near := difflib.get_close_matches(name, known.difference(OF_THE_JOB), 1, LIKE):
            said = f"a Backend has no such attribute; nearest: {near[0]} (begin one of your own with _)"
            raise FormatError(f"{own}.{name}: {said}")
