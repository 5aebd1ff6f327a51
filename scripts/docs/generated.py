"""The files that scripts/docs/make makes, and the parts of README.md and CHANGELOG.md."""

import re

import cli_page
import frameworks
import results
import speed
import versions

CLI = 'docs/cli.md'
VERSION = '2.15.0'  # of PyTorch, in the README's first sentences


def found_in_pytorch(page, hall):
    count, silent = results.bugs(hall, VERSION)
    column = results.columns(page, 2)[0]
    possible = column.counts['pass'] + column.counts['waived']
    return (f'In `torch.distributed.pipelining` of PyTorch {VERSION} it found **{count} bugs**: {silent} give wrong gradients, '
            f'losses or outputs\n**without an error**, {count - silent} end in an exception, an abort or a hang. Of {possible} '
            f'runs on two ranks (a test case under a schedule)\nthat its `PipelineStage` accepts, {column.counts["waived"]} go '
            'wrong because of these bugs.' + found_elsewhere(hall))


def found_elsewhere(hall):
    words = [f'{count} in {engine} ({silent} silent)' for engine, count, silent in results.bugs_elsewhere(hall)]
    return f'\nThe same cases found {", ".join(words)}:\n[engine by engine](docs/engines.md).' if words else ''


def with_part(text, part, name=''):
    """`text` with the part of that name anew; most pages have one part, without a name."""
    mark = f'<!-- made by scripts/docs/make{name and ": " + name} -->\n'
    return re.sub(f'({re.escape(mark)}).*?(<!-- end -->)', lambda found: f'{found[1]}{part}\n{found[2]}', text, flags=re.DOTALL)


def texts(root, help_texts, of_wheel):
    """{path: the text that the file should have}; without docs/cli.md if plumbline-case cannot start."""
    page, hall = ((root / 'docs' / name).read_text(encoding='utf-8') for name in ('torch_pipelining.md', 'hall_of_bugs.md'))
    readme, changelog = ((root / name).read_text(encoding='utf-8') for name in ('README.md', 'CHANGELOG.md'))
    readme = with_part(readme, found_in_pytorch(page, hall))
    readme = with_part(readme, speed.table((root / 'bench/results.jsonl').read_text(encoding='utf-8')), 'speed')
    made = {'docs/frameworks.svg': frameworks.svg(page, hall), 'README.md': readme,
            'CHANGELOG.md': with_part(changelog, versions.table(root))}
    return made | ({CLI: cli_page.page(help_texts, of_wheel)} if of_wheel else {})
