"""docs/frameworks.svg: a column for each engine and version of docs/engines.md, with its cases by verdict."""

from itertools import groupby
from xml.sax.saxutils import escape

import results

KINDS = (('pass', 'agrees with the oracle', '#d7f5df', '#116329'),
         ('waived', 'wrong, or fails: a known bug', '#ffd8d3', '#a40e26'),
         ('left', 'refused or unsupported', '#eef1f4', '#656d76'))
NAMES = {'torch.distributed.pipelining': 'PyTorch'}  # engines whose name is wider than a column
WIDTH, HEIGHT, LEFT, TOP, BAR, BAR_WIDTH, GAP = 900, 430, 28, 112, 210, 96, 12
LOW = 18  # a lower part of a bar has its number beside it
DARK, GREY, RED = '#1f2328', '#656d76', '#a40e26'
FONT = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, 'DejaVu Sans', sans-serif"


def text(x, y, size, fill, words, anchor='middle', bold=False):
    weight = ' font-weight="600"' if bold else ''
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"{weight}>{escape(words)}</text>'


def bar(middle, column, bugs):
    left, y, cases = middle - BAR_WIDTH / 2, TOP, sum(column.counts.values())
    for kind, _, fill, ink in KINDS:
        height = BAR * column.counts[kind] / cases
        yield f'<rect x="{left:g}" y="{y:.1f}" width="{BAR_WIDTH}" height="{height:.1f}" fill="{fill}"/>'
        x, anchor = (left + BAR_WIDTH + 5, 'start') if height < LOW else (middle, 'middle')
        yield text(x, round(y + height / 2 + 5, 1), 14, ink, str(column.counts[kind]), anchor, bold=kind != 'left')
        y += height
    yield text(middle, y + 20, 14, DARK, column.version, bold=True)
    yield text(middle, y + 37, 12, GREY, column.setting)
    count, silent = bugs[column.engine, column.version]
    yield text(middle, y + 56, 12, RED, f'{count} bugs, {silent} silent')


def svg(engines, hall):
    """The arguments are the texts of docs/engines.md and docs/hall_of_bugs.md."""
    columns, bugs = results.columns(engines), results.bugs(hall)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
             f'font-family="{FONT}" role="img">', '<title>The corpus on each engine: cases by verdict</title>',
             f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8" fill="#ffffff" stroke="#d8dee4"/>',
             text(LEFT, 38, 20, DARK, 'The corpus on each engine', 'start', True),
             text(LEFT, 60, 13, GREY, f"{results.cases_of(engines)} cases on two ranks under the engine's own 1F1B (DualPipe: its own order), "
                  f'recorded on {results.date_of(engines)}', 'start')]
    x = LEFT
    for _, words, fill, _ in KINDS:
        lines += [f'<rect x="{x}" y="76" width="16" height="16" rx="3" fill="{fill}" stroke="#d8dee4"/>',
                  text(x + 24, 89, 13, DARK, words, 'start')]
        x += 240
    step, x = (WIDTH - 2 * LEFT) / len(columns), LEFT
    for engine, group in groupby(columns, key=lambda column: column.engine):
        begin = x
        for column in group:
            lines += bar(x + step / 2, column, bugs)
            x += step
        lines += [f'<path d="M{begin + GAP:g} {TOP + BAR + 68}H{x - GAP:g}" stroke="#d8dee4"/>',
                  text((begin + x) / 2, TOP + BAR + 90, 15, DARK, NAMES.get(engine, engine), bold=True)]
    return '\n'.join([*lines, '</svg>', ''])
