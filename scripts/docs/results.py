"""The numbers of docs/torch_pipelining.md and docs/hall_of_bugs.md."""

import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'conformance/python/tests'))
from hall_of_bugs import tables


@dataclass
class Column:
    """The verdicts of one way to use one version of PyTorch."""
    stages: str
    version: str
    counts: dict  # 'pass', 'waived', 'unsupported' -> runs


def columns(page, ranks):
    """The results of the profile core on that number of ranks, newest version first; `page` is torch_pipelining.md."""
    found = [Column(row['stages'], row['PyTorch'], {kind: int(row[kind]) for kind in ('pass', 'waived', 'unsupported')})
             for table in tables(page) if table and 'unsupported' in table[0]
             for row in table if row['ranks'] == str(ranks) and row['cases'].startswith('core')]
    return sorted(found, key=lambda column: ([-int(part) for part in column.version.split('.')], column.stages))


def bugs_elsewhere(hall):
    """[(engine, bugs of its newest version, silent ones)] of every section but the first, in the order of hall_of_bugs.md."""
    found = []
    for section in hall.split('\n## ')[2:]:
        rows = next(tables(section))
        words = [row[list(row)[1]] for row in rows]
        found.append((section.splitlines()[0], sum(word != '-' for word in words), words.count('silent')))
    return found


def bugs(hall, version):
    """(how many bugs that version of PyTorch has, how many of them are silent); `hall` is hall_of_bugs.md."""
    words = [row[version] for table in tables(hall) for row in table if version in row]
    return sum(word != '-' for word in words), words.count('silent')
