"""Tests of scripts/docs/check and make: a small tree of pages with a program that is a shell script."""

import ast
import json
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import frameworks
import generated
import pages
import results
import speed

PROGRAM = r'''#!/bin/sh
case "$*" in
  --help) printf 'usage\n\nOPTIONS:\n  -h, --help  this\n\nSUBCOMMANDS:\n  greet       says hello\n  count       some numbers\n' ;;
  'count --help') printf 'usage\n' ;;
  'greet --help') printf 'usage\n\nOPTIONS:\n  --loud      in capitals\n' ;;
  greet) echo 'hello from /tmp/somewhere/here in 0.25 s'; echo 'and good bye' ;;
  'greet --loud') echo HELLO; exit 1 ;;
  count) echo '2.5 and -8 of f32[4,8]' ;;
  *) echo "bad: $*"; exit 2 ;;
esac
'''
RESULTS = '''
| stages | PyTorch | ranks | cases | recorded | runs | pass | waived | unsupported | skipped |
|---|---|---|---|---|---|---|---|---|---|
| static | 2.15.0 | 2 | core, 10 | 2 May 2020 | 10 | 5 | 2 | 3 |  |
| manual | 2.9.0 | 2 | core, 10 | 2 May 2020 | 10 | 4 | 3 | 3 |  |
| manual | 2.15.0 | 4 | core, 10 | 2 May 2020 | 10 | 7 | 1 | 2 |  |
| manual | 2.15.0 | 2 | smoke | 2 May 2020 | 3 | 1 | 1 | 1 |  |
| manual | 2.15.0 | 2 | core, 12 | 3 May 2020 | 20 | 11 | 2 | 7 |  |
'''
HALL = '''
## torch.distributed.pipelining

| what goes wrong | 2.15.0 | 2.9.0 | case | script |
|---|---|---|---|---|
| A wrong sum. PyTorch leaves the sum to its user. | silent | - | `a` | `a.py` |
| fails | loud | loud | `b` | `b.py` |
| fails, too | loud | - | none | `c.py` |

## Mine

| what | 2.0 | 1.0 |
|---|---|---|
| a | silent | - |
| b | - | loud |
| c | loud | loud |
'''
ENGINES = '''
| chapter | [torch.distributed.pipelining (manual stages) 2.15.0](a.md) | [Mine (fast) 2.0](b.md) | [Mine (slow) 2.0](b.md) | [Mine 1.0](b.md) |
|---|---|---|---|---|
| one | 6 · 0 · 0 | 1 · 1 · 4 | 6 · 0 · 0 | 0 · 6 · 0 |
| **all** | **60 · 10 · 30** | **11 · 2 · 87** | **97 · 2 · 1** | **0 · 95 · 5** |

Recorded on 4 May 2020, with care.
'''


class Tree(unittest.TestCase):
    """`check` on a tree with one page."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for name, text in {'build/plumbline': PROGRAM, 'README.md': '', 'CONTRIBUTING.md': '', 'conformance/INTERPRETING.md': '',
                           'source.c': 'int a;\nint b;\n', 'scripts/docs/commands.toml': ''}.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        (self.root / 'docs').mkdir()
        (self.root / 'build/plumbline').chmod(0o755)

    def check(self, page, entries=''):
        (self.root / 'README.md').write_text(page)
        (self.root / 'scripts/docs/commands.toml').write_text(entries)
        done = subprocess.run([HERE / 'check', '--root', self.root, 'README.md'], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def expect(self, code, text, page, entries=''):
        found, output = self.check(page, entries)
        self.assertEqual(found, code, output)
        self.assertIn(text, output)

    def test_a_command_is_run_and_its_exit_code_counts(self):
        self.expect(0, '1 run', '```sh\nplumbline greet   # says hello\n```\n')
        self.expect(1, 'README.md:2: exit 1, expected 0: plumbline greet --loud', '```sh\nplumbline greet --loud\n```\n')
        self.expect(0, '1 run', '```sh\nplumbline greet --loud\n```\n', '[[command]]\ncommand = "plumbline greet --loud"\nexit = 1\n')

    def test_a_sample_is_compared_word_by_word(self):
        page = '```console\n$ build/plumbline greet\n%s\n```\n'
        self.expect(0, '1 samples', page % 'hello from /other/here\nin 9 s\nand good bye')
        self.expect(0, '1 samples', page % '...\nand good bye')
        self.expect(1, 'README.md:2: the sample is not what it prints', page % 'hello from /other/here in 9 s\nand good')
        self.expect(1, 'README.md:2: the sample is not what it prints', page % '...\nnd good bye')
        self.expect(1, 'README.md:2: the sample is not what it prints', page % 'hullo\n...')

    def test_numbers_may_depend_on_the_machine(self):
        page = '```console\n$ plumbline count\n-1.5 and 7e-05 of f32[2,8]\n```\n'
        self.expect(1, 'the sample is not what it prints', page)
        entry = '[[command]]\ncommand = "plumbline count"\n'
        self.expect(0, '1 samples', page, entry + 'any_numbers = true\n')
        self.expect(1, 'the sample is not what it prints', page.replace('and', 'or'), entry + 'any_numbers = true\n')

    def test_a_command_may_have_a_cheaper_form_or_a_reason(self):
        page = '```sh\nplumbline greet --loud\n```\n'
        entry = '[[command]]\ncommand = "plumbline greet --loud"\n'
        self.expect(0, '1 run in a cheaper form', page, entry + 'run = "plumbline greet"\n')
        self.expect(0, 'not run: README.md:2: plumbline greet --loud: too loud', page, entry + 'not_run = "too loud"\n')
        self.expect(0, 'skipped', page, entry + 'needs = "false"\n')
        self.expect(1, 'exit 1', page, entry + 'needs = "true"\n')

    def test_an_engine_that_is_not_set_up_is_skipped(self):
        peer = self.root / 'scripts/peer'
        peer.write_text('#!/bin/sh\ncase "$*" in "torch 1.0 --check") exit 1;; esac\necho "$@"\n')
        peer.chmod(0o755)
        self.expect(0, 'skipped, `scripts/peer torch 1.0 --check` fails here', '```sh\nscripts/peer torch 1.0 -- a.py\n```\n')
        self.expect(0, '1 run', '```sh\nscripts/peer jax 1.0 -- a.py\n```\n')

    def test_options_are_checked_where_nothing_is_run(self):
        self.expect(1, 'README.md:1: plumbline greet has no option --lou', 'See `plumbline greet --lou`.\n')
        self.expect(1, 'no subcommand meet; expected one of greet, count', '`plumbline meet`\n')
        self.expect(1, 'README.md:1: no file scripts/nothing', 'See `scripts/nothing`.\n')
        self.expect(0, '1 named in the text', 'See `plumbline greet --loud`.\n')

    def test_every_block_is_held_against_something(self):
        self.expect(1, 'README.md:1: a block without a language', '```\nplumbline greet\n```\n')
        self.expect(1, 'README.md:1: nothing checks this block', '```c\nint a;\n```\n')
        self.expect(0, '1 excerpts', '<!-- excerpt: source.c -->\n```c\nint b;\n```\n')
        self.expect(1, 'README.md:2: these lines are not in source.c', '<!-- excerpt: source.c -->\n```c\nnt b;\n```\n')
        self.expect(1, 'README.md:2: these lines are not in source.c', '<!-- excerpt: source.c -->\n```c\nint c;\n```\n')
        self.expect(0, 'not run: README.md:2: text: a drawing', '<!-- not checked: a drawing -->\n```text\n/\\\n```\n')
        self.expect(1, 'README.md:1: the block is never closed', '```sh\nplumbline greet\n')
        self.expect(1, 'README.md:2: output without a command', '```console\nhello\n```\n')

    def test_without_plumbline_bench_its_commands_are_listed_as_skipped(self):
        page = '```sh\nplumbline bench speed\n```\nSee `build/plumbline bench --fast` and `plumbline-bench speed`.\n'
        reason = 'skipped, there is no plumbline-bench beside the program'
        code, output = self.check(page)
        self.assertEqual(code, 0, output)
        for line in (f'README.md:2: plumbline bench speed: {reason}', f'README.md:4: build/plumbline bench --fast: {reason}',
                     f'README.md:4: plumbline-bench speed: {reason}', 'docs: 3 not run, 3 skipped'):
            self.assertIn(line, output)
        (self.root / 'build/plumbline-bench').touch()
        self.expect(1, 'README.md:2: no subcommand bench', page)

    def test_json_is_held_against_a_schema(self):
        page = '<!-- json: %s -->\n```json\n%s\n```\n'
        answer = '[{"id": "a", "schedule": "b", "supported": true}]'
        self.expect(0, '1 JSON', page % ('plan', answer))
        self.expect(1, 'README.md:2: [0].supported: expected true, got 1', page % ('plan', answer.replace('true', '1')))
        self.expect(1, 'README.md:2: the block: not JSON', page % ('plan', answer[:-1]))
        self.expect(1, 'README.md:2: no schema plans; expected one of', page % ('plans', answer))
        self.expect(0, '1 JSON', page % ('case', '"stages": 2, "microbatches": 4'))
        self.expect(1, 'README.md:2: microbatches: ', page % ('case', '"stages": 2, "microbatches": "4"'))
        self.expect(1, 'README.md:2: case has no member stage', page % ('case', '"stage": 2'))

    def test_a_file_is_there_for_later_commands(self):
        self.expect(0, '1 run', '<!-- file: new/my.txt -->\n```text\nhi\n```\n\n```sh\ngrep hi new/my.txt\n```\n')

    def test_links_lead_somewhere(self):
        self.expect(0, '2 links', '# One `two`, three\n[here](source.c) [there](#one-two-three) [far](https://example.org/x)\n')
        self.expect(1, 'README.md:1: no file docs/none.md', '[here](docs/none.md)\n')
        self.expect(1, 'README.md:2: no heading #two in README.md', '# One\n[here](#two)\n')

    def test_the_tree_is_never_written(self):
        self.expect(1, 'source.c: a command on some page has written into', '```sh\necho changed > source.c\n```\n')
        self.expect(0, '1 run', '```sh\necho changed > new.c && mv new.c source.c\n```\n')
        self.assertEqual((self.root / 'source.c').read_text(), 'int a;\nint b;\n')

    def test_an_entry_that_no_page_uses_is_found(self):
        (self.root / 'scripts/docs/commands.toml').write_text('[[command]]\ncommand = "plumbline part"\nnot_run = "gone"\n')
        (self.root / 'CHANGELOG.md').write_text('')
        for file, text in {'torch_pipelining': RESULTS, 'hall_of_bugs': HALL, 'engines': ENGINES, 'benchmarks': ''}.items():
            (self.root / f'docs/{file}.md').write_text(text)
        (self.root / 'conformance/python').symlink_to(HERE.parents[1] / 'conformance/python')
        (self.root / 'conformance/INTERPRETING.md').write_text('Version **1**\n')
        for file in ('meson.build', 'conformance/protocol/protocol.h',
                     'conformance/export/opset.h', 'conformance/corpus.lock', 'bench/results.jsonl'):
            (self.root / file).parent.mkdir(parents=True, exist_ok=True)
            (self.root / file).write_text((HERE.parents[1] / file).read_text())
        done = subprocess.run([HERE / 'check', '--root', self.root], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('commands.toml:1: on no page: plumbline part', done.stdout)
        self.assertIn('docs/frameworks.svg:1: not current', done.stdout)
        self.assertIn('not run: docs/cli.md:1: skipped, there is no plumbline-bench', done.stdout)
        self.assertNotIn('docs/cli.md:1: not current', done.stdout)
        (self.root / 'build/plumbline-bench').touch()
        done = subprocess.run([HERE / 'check', '--root', self.root], capture_output=True, text=True)
        self.assertIn('docs/cli.md:1: not current', done.stdout)


class Numbers(unittest.TestCase):
    def test_an_engine_has_one_column_for_each_version(self):
        self.assertEqual([(column.engine, column.setting, column.version, *column.counts.values()) for column in results.columns(ENGINES)],
                         [('torch.distributed.pipelining', 'manual stages', '2.15.0', 60, 10, 30), ('Mine', 'fast', '2.0', 11, 2, 87),
                          ('Mine', '', '1.0', 0, 95, 5)])

    def test_bugs_are_counted_by_engine_and_version(self):
        self.assertEqual(results.bugs(HALL), {('torch.distributed.pipelining', '2.15.0'): (3, 1), ('Mine', '1.0'): (2, 0),
                                              ('torch.distributed.pipelining', '2.9.0'): (1, 0), ('Mine', '2.0'): (2, 1)})

    def test_the_readme_says_when_and_of_which_versions(self):
        made = generated.found_in_pytorch(RESULTS, HALL, ENGINES, {'exact': 9, 'bounded': 2})
        self.assertEqual(' '.join(made.split()),
                         'In `torch.distributed.pipelining` of PyTorch 2.15.0 the corpus, and a reading of the sources beside it, found '
                         '**3 bugs**: 1 give wrong gradients, losses, outputs, parameters, buffers or stages **without an error**, '
                         '2 end in an exception, an abort or a hang. A case of the corpus shows 2 of '
                         'them, a script alone the other 1; 1 of the 3 is a sum that PyTorch leaves to its user. It also found 2 in '
                         'Mine 2.0 (1 silent): [engine by engine](docs/engines.md). Of 20 runs on two ranks (a run is a case under a '
                         "schedule) PyTorch's `PipelineStage` accepts 13; in 2 of these one of the bugs occurs. These runs are of "
                         '3 May 2020, when the corpus had 12 cases; the picture is of 4 May 2020, with 100. Today it has 11: '
                         '9 exact, 2 bounded.')
        same = generated.found_in_pytorch(RESULTS, HALL, ENGINES.replace('4 May 2020', '3 May 2020'), {'exact': 9})
        self.assertIn('the picture is of 3 May 2020, with 100', ' '.join(same.split()))
        of_one_day = RESULTS.replace('core, 12', 'core, 100').replace('3 May 2020', '4 May 2020')
        self.assertIn('These runs and those of the picture are of 4 May 2020, when the corpus had 100 cases. Today it has 9',
                      ' '.join(generated.found_in_pytorch(of_one_day, HALL, ENGINES, {'exact': 9}).split()))

    def test_cases_are_counted_by_truth(self):
        with tempfile.TemporaryDirectory() as folder:
            cases = Path(folder) / 'conformance/corpus/cases'
            cases.mkdir(parents=True)
            (cases / 'a.toml').write_text('[[case]]\nmodel = "mlp"\ntruth = "bounded"\n[[case]]\nmodel = "exact-mlp"\n')
            (cases / 'b.toml').write_text('[[case]]\nmodel = "exact-mlp"\ntruth = "exact"\n' + '[[case]]\nmodel = "mlp"\n' * 3)
            self.assertEqual(list(results.truths(Path(folder)).items()), [('same-order', 3), ('exact', 2), ('bounded', 1)])

    def test_the_picture_shows_every_number_and_is_low_enough(self):
        picture = ElementTree.fromstring(frameworks.svg(ENGINES, HALL))
        self.assertLessEqual(int(picture.get('height')), 450)
        name = '{http://www.w3.org/2000/svg}'
        words = [text.text for text in picture.iter(name + 'text')]
        shown = ['60', '10', '30', '11', '2', '87', '0', '95', '5', 'PyTorch', '2.15.0', 'Mine', '2.0', '1.0', '3 bugs, 1 silent']
        for word in [*shown, '2 bugs, 0 silent', "100 cases on two ranks under the engine's own 1F1B (DualPipe: its own order), "
                                                 'recorded on 4 May 2020']:
            self.assertIn(word, words)
        self.assertNotIn('97', words)
        bars = [bar for bar in picture.iter(name + 'rect') if bar.get('width') == str(frameworks.BAR_WIDTH)]
        heights = [float(bar.get('height')) for bar in bars]
        self.assertEqual([round(100 * height / sum(heights[:3])) for height in heights], [60, 10, 30, 11, 2, 87, 0, 95, 5])


class Glossary(unittest.TestCase):
    def test_every_status_of_the_wheel_is_explained(self):
        said = set()
        for module in ('judge', 'report_folder', 'run'):
            source = (HERE.parents[1] / f'conformance/python/plumbline_case/{module}.py').read_text(encoding='utf-8')
            said |= {node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)
                     and isinstance(node.value, str) and re.fullmatch('[A-Z]{4,}|[A-Z]+ [A-Z]+', node.value)}
        self.assertLessEqual({'PASS', 'NOT JUDGED', 'NOT RUN', 'XFAIL'}, said)  # the search finds them
        page = (HERE.parents[1] / 'docs/glossary.md').read_text(encoding='utf-8')
        explained = {word for table in results.tables(page) for row in table for title in ('status', 'word')
                     for word in row.get(title, '').split(', ')}
        self.assertEqual(said - explained, set())


class Speed(unittest.TestCase):
    def history(self, *runs):
        return ''.join(json.dumps({'date': f'2026-11-{day}T00:00:00Z', 'commit': f'c{day}', 'modified': day == 12, 'machine': {
            'hardware': 'h', 'libtorch': 't', 'mpi': 'm', 'compiler': 'g'}, 'benchmarks': [
                {'name': benchmark, 'figures': [{'name': figure, 'unit': 's', 'samples': samples}]}
                for _, benchmark, figure in rows]}) + '\n' for day, rows, samples in runs)

    def test_the_newest_run_that_has_a_figure_is_shown(self):
        first, *rest = speed.ROWS
        history = self.history((10, speed.ROWS, [5e-3]), (12, [first], [4e-6, 2e-6, 3e-6, 1e-6, 9e-6]))
        table = speed.table(history, speed.ROWS)
        self.assertIn(f'| {first[0]} | 3 µs | 2 µs to 4 µs |', table)
        self.assertIn(f'| {rest[0][0]} | 5 ms | one sample |', table)
        self.assertIn('Last measured on 2026-11-12, at commits c12 (modified sources), c10.\nThe machine: h, shared', table)

    def test_a_row_without_a_measurement_is_an_error(self):
        with self.assertRaises(KeyError):
            speed.table(self.history((10, speed.ROWS[1:], [1])), speed.ROWS)

    def test_the_readme_has_some_of_the_rows(self):
        table = speed.table(self.history((10, speed.ROWS, [5e-3])), speed.IN_README)
        self.assertEqual([row[0] in table for row in speed.ROWS], [row in speed.IN_README for row in speed.ROWS])


class Lines(unittest.TestCase):
    def test_comments_are_cut_outside_quotes(self):
        self.assertEqual(pages.without_comment("run  --case 'a # b'   # why"), "run --case 'a # b'")
        self.assertEqual(pages.without_comment('# only a comment'), '')
        self.assertEqual(pages.without_comment('cat a#1'), 'cat a#1')

    def test_a_backslash_continues_a_command(self):
        block = pages.Block('p.md', 10, 'sh', ['run \\', '  --fast', 'stop'])
        self.assertEqual([(step.line, step.command) for step in pages.steps_of(block)], [(11, 'run --fast'), (13, 'stop')])


if __name__ == '__main__':
    unittest.main()
