"""docs/frameworks.svg: a column for each framework, version and kind of stages, with the share of each verdict."""

from itertools import groupby
from xml.sax.saxutils import escape

import results

RANKS = 2
KINDS = (('pass', 'agrees with the oracle', '#d7f5df', '#116329'),
         ('waived', 'wrong result or failure', '#ffd8d3', '#a40e26'),
         ('unsupported', 'declined as unsupported', '#eef1f4', '#656d76'))
WIDTH, HEIGHT, TOP, BAR, BAR_WIDTH, STEP, GAP, LEFT = 900, 420, 84, 236, 88, 104, 40, 28
FONT = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, 'DejaVu Sans', sans-serif"


def text(x, y, size, fill, words, anchor='middle', bold=False):
    weight = ' font-weight="600"' if bold else ''
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}"{weight}>{escape(words)}</text>'


def bar(x, column):
    runs, y = sum(column.counts.values()), TOP
    for kind, _, fill, ink in KINDS:
        height = BAR * column.counts[kind] / runs
        yield f'<rect x="{x:g}" y="{y:.1f}" width="{BAR_WIDTH}" height="{height:.1f}" fill="{fill}" stroke="#ffffff"/>'
        yield text(x + BAR_WIDTH / 2, y + height / 2 + 5, 14, ink, str(column.counts[kind]), bold=kind != 'unsupported')
        y += height
    yield text(x + BAR_WIDTH / 2, y + 18, 13, '#1f2328', column.stages)


def svg(page, hall):
    """The arguments are the texts of docs/torch_pipelining.md and docs/hall_of_bugs.md."""
    columns = results.columns(page, RANKS)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
             f'font-family="{FONT}" role="img">', '<title>What each framework makes of the corpus</title>',
             f'<rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{HEIGHT - 1}" rx="8" fill="#ffffff" stroke="#d8dee4"/>',
             text(LEFT, 38, 20, '#1f2328', 'The corpus in torch.distributed.pipelining', 'start', True),
             text(LEFT, 60, 13, '#656d76', f'runs of the profile core on {RANKS} ranks, by verdict', 'start')]
    x = LEFT
    for version, group in groupby(columns, key=lambda column: column.version):
        group, begin = list(group), x
        for column in group:
            lines += bar(x, column)
            x += STEP
        end = x - STEP + BAR_WIDTH
        count, silent = results.bugs(hall, version)
        lines += [f'<path d="M{begin} {TOP + BAR + 30}H{end}" stroke="#d8dee4"/>',
                  text((begin + end) / 2, TOP + BAR + 52, 15, '#1f2328', f'PyTorch {version}', bold=True),
                  text((begin + end) / 2, TOP + BAR + 72, 13, '#a40e26', f'{count} bugs, {silent} silent')]
        x += GAP - (STEP - BAR_WIDTH)
    for number, (_, words, fill, _) in enumerate(KINDS):
        y = TOP + 20 + 30 * number
        lines += [f'<rect x="{x - 8}" y="{y - 12}" width="16" height="16" rx="3" fill="{fill}" stroke="#d8dee4"/>',
                  text(x + 18, y + 1, 13, '#1f2328', words, 'start')]
    return '\n'.join([*lines, '</svg>', ''])
