"""The versions in CHANGELOG.md, read from the sources."""

import re


def number_in(root, file, pattern):
    found = re.search(pattern, (root / file).read_text(encoding='utf-8'), re.MULTILINE)
    if not found:
        raise ValueError(f'{file}: no line matches {pattern}')
    return found[1]


def table(root):
    cases = {line.split()[1].split('/')[0] for line in (root / 'conformance/corpus.lock').read_text().splitlines()}
    rows = [('program', number_in(root, 'meson.build', r"^  version: '([\d.]+)'"), '`meson.build`'),
            ('contract', number_in(root, 'conformance/INTERPRETING.md', r'Version \*\*(\d+)\*\*'),
             '`conformance/INTERPRETING.md`'),
            ('protocol', number_in(root, 'conformance/protocol/protocol.h', r'kProtocolVersion = (\d+);'),
             '`conformance/protocol/protocol.h`'),
            ('opset', number_in(root, 'conformance/export/opset.h', r'kOpset = (\d+);'), '`conformance/export/opset.h`'),
            ('corpus', f'{len(cases)} cases', '`conformance/corpus.lock`')]
    return '\n'.join(['| | version | from |', '|---|---|---|', *(f'| {" | ".join(row)} |' for row in rows)])
