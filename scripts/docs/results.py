"""The numbers of docs/engines.md, docs/torch_pipelining.md and docs/hall_of_bugs.md."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'conformance/python/tests'))
from hall_of_bugs import tables


@dataclass
class Column:
    """The verdicts of one version of an engine."""
    engine: str
    setting: str  # how the engine is used: "manual stages"
    version: str
    counts: dict  # 'pass', 'waived', 'left' -> cases


def columns(page):
    """One for each engine and version of docs/engines.md, in its order; of several settings the first."""
    row = next(row for table in tables(page) for row in table if row.get('chapter') == '**all**')
    found = {}
    for title, cell in row.items():
        words = re.match(r'\[(.+?)(?: \(([^)]+)\))? ([\d.]+)\]', title)
        if words:
            counts = dict(zip(('pass', 'waived', 'left'), map(int, cell.strip('*').split(' · ')), strict=True))
            found.setdefault((words[1], words[3]), Column(words[1], words[2] or '', words[3], counts))
    return list(found.values())


def date_of(page):
    """The day on which docs/engines.md was recorded."""
    return re.search(r'Recorded on (\d+ \w+ \d+)', page)[1]


def core_runs(page, version):
    """The row of docs/torch_pipelining.md for manual stages of that version under the profile core, on two ranks."""
    return next(row for table in tables(page) for row in table
                if (row.get('stages'), row.get('PyTorch'), row.get('ranks')) == ('manual', version, '2') and row['cases'].startswith('core'))


def bugs(hall):
    """{(engine, version): (how many bugs it has, how many of them are silent)}, in the order of docs/hall_of_bugs.md."""
    found = {}
    for section in hall.split('\n## ')[1:]:
        engine = section.splitlines()[0]
        rows = next(tables(section))
        for version in filter(re.compile(r'[\d.]+').fullmatch, rows[0]):
            words = [row[version] for row in rows]
            found[engine, version] = (sum(word != '-' for word in words), words.count('silent'))
    return found
