"""The files that scripts/docs/make makes, and the parts of README.md, CHANGELOG.md and docs/benchmarks.md."""

import re
import textwrap

import cli_page
import frameworks
import results
import speed
import versions

CLI = 'docs/cli.md'
PYTORCH, VERSION = 'torch.distributed.pipelining', '2.15.0'  # in the README's first sentences


def found_in_pytorch(page, hall, engines, truths):
    """The README's numbers; the arguments are the texts of docs/torch_pipelining.md, docs/hall_of_bugs.md and docs/engines.md,
    and how many cases of today's corpus have each truth."""
    bugs, row = results.bugs(hall), results.core_runs(page, VERSION)
    count, silent = bugs[PYTORCH, VERSION]
    with_case, left_to_user = results.kinds_of_bugs(hall, PYTORCH, VERSION)
    accepted = int(row['pass']) + int(row['waived'])
    paragraphs = [
        f'In `{PYTORCH}` of PyTorch {VERSION} the corpus, and a reading of the sources beside it, found **{count} bugs**: '
        f'{silent} give wrong gradients, losses, outputs, parameters, buffers or stages **without an error**, {count - silent} '
        f'end in an exception, an abort or a hang. A case of the corpus shows {with_case} of them, a script alone the other '
        f'{count - with_case}; {left_to_user} of the {count} is a sum that PyTorch leaves to its user.'
        f'{found_elsewhere(bugs)}',
        f'Of {row["runs"]} runs on two ranks (a run is a case under a schedule) PyTorch\'s `PipelineStage` accepts {accepted}; in '
        f'{row["waived"]} of these one of the bugs occurs. {when_recorded(row, engines)}. Today it has {sum(truths.values())}: '
        f'{", ".join(f"{number} {truth}" for truth, number in truths.items())}.']
    return '\n\n'.join('\n'.join(textwrap.wrap(words, 122, break_on_hyphens=False, break_long_words=False)) for words in paragraphs)


def when_recorded(row, engines):
    """When the runs of a row of docs/torch_pipelining.md and the picture of docs/engines.md were made, and of how many cases."""
    runs = row['recorded'], row['cases'].split()[-1]
    picture = results.date_of(engines), str(results.cases_of(engines))
    if runs == picture:
        return f'These runs and those of the picture are of {runs[0]}, when the corpus had {runs[1]} cases'
    return f'These runs are of {runs[0]}, when the corpus had {runs[1]} cases; the picture is of {picture[0]}, with {picture[1]}'


def found_elsewhere(bugs):
    """A sentence about the newest version of each other engine."""
    newest = {}
    for (engine, version), (count, silent) in bugs.items():
        newest.setdefault(engine, f'{count} in {engine} {version} ({silent} silent)')
    words = [sentence for engine, sentence in newest.items() if engine != PYTORCH]
    return f' It also found {", ".join(words)}: [engine by engine](docs/engines.md).' if words else ''


def with_part(text, part, name=''):
    """`text` with the part of that name anew; most pages have one part, without a name."""
    mark = f'<!-- made by scripts/docs/make{name and ": " + name} -->\n'
    return re.sub(f'({re.escape(mark)}).*?(<!-- end -->)', lambda found: f'{found[1]}{part}\n{found[2]}', text, flags=re.DOTALL)


def texts(root, help_texts, of_wheel):
    """{path: the text that the file should have}; without docs/cli.md if the help of `plumbline bench` or of plumbline-case is
    missing."""
    def text(name):
        return (root / name).read_text(encoding='utf-8')

    hall, history = text('docs/hall_of_bugs.md'), text('bench/results.jsonl')
    readme = with_part(text('README.md'), found_in_pytorch(text('docs/torch_pipelining.md'), hall, text('docs/engines.md'), results.truths(root)))
    readme = with_part(readme, speed.table(history, speed.IN_README), 'speed')
    cli = {CLI: cli_page.page(help_texts, of_wheel)} if help_texts.has_bench and of_wheel else {}
    return {**cli, 'docs/frameworks.svg': frameworks.svg(text('docs/engines.md'), hall), 'README.md': readme,
            'CHANGELOG.md': with_part(text('CHANGELOG.md'), versions.table(root)),
            'docs/benchmarks.md': with_part(text('docs/benchmarks.md'), speed.table(history, speed.ROWS), 'speed')}
