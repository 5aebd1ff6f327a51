"""The files that scripts/docs/make makes, and the parts of README.md and CHANGELOG.md."""

import re

import cli_page
import frameworks
import results
import versions

VERSION = '2.15.0'  # of PyTorch, in the README's first sentences
PART = re.compile(r'(<!-- made by scripts/docs/make -->\n).*?(<!-- end -->)', re.DOTALL)


def found_in_pytorch(page, hall):
    count, silent = results.bugs(hall, VERSION)
    column = results.columns(page, 2)[0]
    possible = column.counts['pass'] + column.counts['waived']
    return (f'In `torch.distributed.pipelining` of PyTorch {VERSION} it found **{count} bugs**: {silent} give wrong gradients, '
            f'losses or outputs\n**without an error**, {count - silent} end in an exception, an abort or a hang. Of {possible} '
            f'runs on two ranks (a test case under a schedule)\nthat its `PipelineStage` takes, {column.counts["waived"]} go '
            'wrong because of these bugs.' + found_elsewhere(hall))


def found_elsewhere(hall):
    words = [f'{count} in {engine} ({silent} silent)' for engine, count, silent in results.bugs_elsewhere(hall)]
    return f'\nThe same cases found {", ".join(words)}:\n[engine by engine](docs/engines.md).' if words else ''


def with_part(file, part):
    return PART.sub(lambda found: f'{found[1]}{part}\n{found[2]}', file.read_text(encoding='utf-8'))


def texts(root, help_texts):
    """{path: the text that the file should have}."""
    page, hall = ((root / 'docs' / name).read_text(encoding='utf-8') for name in ('torch_pipelining.md', 'hall_of_bugs.md'))
    return {'docs/cli.md': cli_page.page(help_texts), 'docs/frameworks.svg': frameworks.svg(page, hall),
            'README.md': with_part(root / 'README.md', found_in_pytorch(page, hall)),
            'CHANGELOG.md': with_part(root / 'CHANGELOG.md', versions.table(root))}
