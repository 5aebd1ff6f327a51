"""The numbers of docs/engines.md, docs/torch_pipelining.md and docs/hall_of_bugs.md."""

import re
import sys
import tomllib
from collections import Counter
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


def cases_of(page):
    """How many cases the corpus had when docs/engines.md was recorded."""
    cases, = {sum(column.counts.values()) for column in columns(page)}
    return cases


def truths(root):
    """{truth: how many cases of the corpus have it}, the most frequent first."""
    files = (root / 'conformance/corpus/cases').glob('*.toml')
    cases = [case for file in files for case in tomllib.loads(file.read_text(encoding='utf-8'))['case']]
    counts = Counter(case.get('truth', 'exact' if case['model'].startswith('exact-') else 'same-order') for case in cases)
    return dict(counts.most_common())


def core_runs(page, version):
    """The row of docs/torch_pipelining.md for manual stages of that version under the profile core, on two ranks."""
    return next(row for table in tables(page) for row in table
                if (row.get('stages'), row.get('PyTorch'), row.get('ranks')) == ('manual', version, '2') and row['cases'].startswith('core'))


def sections(hall):
    """{engine: its rows}, in the order of docs/hall_of_bugs.md."""
    return {section.splitlines()[0]: next(tables(section)) for section in hall.split('\n## ')[1:]}


def bugs(hall):
    """{(engine, version): (how many bugs it has, how many of them are silent)}, in the order of docs/hall_of_bugs.md."""
    found = {}
    for engine, rows in sections(hall).items():
        for version in filter(re.compile(r'[\d.]+').fullmatch, rows[0]):
            words = [row[version] for row in rows]
            found[engine, version] = (sum(word != '-' for word in words), words.count('silent'))
    return found


def kinds_of_bugs(hall, engine, version):
    """(how many of its bugs a case shows, how many are a sum that the engine leaves to its user)."""
    rows = [row for row in sections(hall)[engine] if row[version] != '-']
    return sum(row['case'].startswith('`') for row in rows), sum('leaves the sum to its user' in ' '.join(row.values()) for row in rows)
