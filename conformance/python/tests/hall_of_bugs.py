"""The tables of docs/hall_of_bugs.md, and of other pages."""

import os
import re

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..")
TORCH = os.path.join(ROOT, "conformance", "python", "torch_pipelining")


def text(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def tables(page):
    """Every table of a page: a list of its rows, {title of the column: cell}."""
    for block in re.findall(r"(?:^\|.*\|\n)+", page, re.MULTILINE):
        titles, _, *rows = [[cell.strip() for cell in line[1:-1].split("|")] for line in block.splitlines()]
        yield [dict(zip(titles, row, strict=True)) for row in rows]


def bugs():
    """{script: its row in docs/hall_of_bugs.md}"""
    rows = [row for table in tables(text("docs", "hall_of_bugs.md")) for row in table if "script" in row]
    by_script = {row["script"].strip("`"): row for row in rows}
    assert len(by_script) == len(rows), "two rows for one script"
    return by_script
