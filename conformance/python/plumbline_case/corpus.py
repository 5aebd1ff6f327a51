"""A folder of exported cases: ID/SCHEDULE-RANKS, each with its files. The package carries one."""

import difflib
import fnmatch
import os

from .again import pasted
from .schema import FormatError

PACKAGED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


class Entry:
    """A case under a schedule on a number of ranks."""

    def __init__(self, root, case, leaf):
        self.root, self.folder = root, os.path.join(root, case, leaf)
        self.case = case
        self.schedule, _, ranks = leaf.rpartition("-")
        self.ranks = int(ranks)

    name = property(lambda self: f"{self.case}[{self.schedule}-{self.ranks}]")


def entries(root=None):
    """All entries of a corpus, sorted. Raises FormatError for a folder that holds none."""
    root = root or PACKAGED
    found = []
    for case in sorted(os.listdir(root)) if os.path.isdir(root) else ():
        for leaf in sorted(os.listdir(os.path.join(root, case))) if os.path.isdir(os.path.join(root, case)) else ():
            if leaf.rpartition("-")[2].isdigit() and os.path.exists(os.path.join(root, case, leaf, "case.json")):
                found.append(Entry(root, case, leaf))
    if not found:
        raise FormatError(f"{root}: no cases; expected the output folder of `plumbline export`")
    return found


def matching(found, what, patterns):
    """The cases or schedules that match one of the shell patterns, which commas separate. Raises FormatError for one
    without a match."""
    names, chosen = {getattr(entry, what) for entry in found}, set()
    for pattern in patterns.split(","):
        matches = set(fnmatch.filter(names, pattern))
        if not matches:
            root = found[0].root
            all_of_them = pasted("list", *(() if root == PACKAGED else ("--corpus", root)))
            nearest = ", ".join(near_names(names, pattern))
            raise FormatError(f"no {what} matches '{pattern}'; nearest: {nearest} (`{all_of_them}` has all)")
        chosen |= matches
    return chosen


def near_names(names, asked):
    """The three nearest, however far; first those that contain it."""
    asked = asked.strip("*?")
    likeness = lambda name: difflib.SequenceMatcher(None, name, asked).ratio()
    return sorted(names, key=lambda name: (asked not in name, -likeness(name), name))[:3]


def select(found, cases="*", schedules="*", ranks=None):
    """The entries of these cases, schedules and numbers of ranks."""
    if ranks is not None:
        numbers = sorted({entry.ranks for entry in found})
        if ranks not in numbers:
            raise FormatError(f"--ranks {ranks}: the corpus has cases on {', '.join(map(str, numbers))} ranks")
        chosen = matching(found, "case", cases)
        theirs = {entry.ranks for entry in found if entry.case in chosen}
        if ranks not in theirs:
            raise FormatError(f"--ranks {ranks}: '{cases}' is in the corpus on {', '.join(map(str, sorted(theirs)))} ranks")
        found = [entry for entry in found if entry.ranks == ranks]
    ids = matching(found, "case", cases)
    names = matching(found, "schedule", schedules)
    return [entry for entry in found if entry.case in ids and entry.schedule in names]
