"""A folder of exported cases: ID/SCHEDULE-RANKS, each with its files. The package carries one."""

import fnmatch
import os

from .schema import FormatError

PACKAGED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


class Entry:
    """A case under a schedule on a number of ranks."""

    def __init__(self, root, case, leaf):
        self.folder = os.path.join(root, case, leaf)
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


def matching(names, patterns):
    """Those that match one of the shell patterns, which commas separate. Raises FormatError for one without a match."""
    chosen = set()
    for pattern in patterns.split(","):
        matches = set(fnmatch.filter(names, pattern))
        if not matches:
            raise FormatError(f"'{pattern}' matches none of {', '.join(sorted(set(names)))}"[:400])
        chosen |= matches
    return chosen


def select(found, cases="*", schedules="*", ranks=None):
    """The entries of these cases, schedules and numbers of ranks."""
    if ranks is not None:
        numbers = sorted({entry.ranks for entry in found})
        if ranks not in numbers:
            raise FormatError(f"--ranks {ranks}: the corpus has cases on {', '.join(map(str, numbers))} ranks")
        chosen = matching([entry.case for entry in found], cases)
        theirs = {entry.ranks for entry in found if entry.case in chosen}
        if ranks not in theirs:
            raise FormatError(f"--ranks {ranks}: '{cases}' is in the corpus on {', '.join(map(str, sorted(theirs)))} ranks")
        found = [entry for entry in found if entry.ranks == ranks]
    ids = matching([entry.case for entry in found], cases)
    names = matching([entry.schedule for entry in found], schedules)
    return [entry for entry in found if entry.case in ids and entry.schedule in names]
