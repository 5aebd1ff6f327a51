"""The pages of errors against the sources: each message of the pages is in them, and each of their messages is on a page."""

import ast
import functools
import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ['docs/errors.md', 'docs/errors-of-input.md']
# Whose messages the pages list: all sources of these folders but tests and VERDICTS. The pages also name some of OTHERS.
ROOMS = ['runtime', 'conformance', 'reference', 'bench']
# Sentences of verdicts, and what commands print when all is well.
VERDICTS = ('conformance/judge/verdict/finding.cc', 'conformance/judge/likeness.cc', 'conformance/recording/against_text.cc',
            'conformance/report/page/', 'conformance/report/text.cc', 'runtime/schedule/simulation/critical_path.cc',
            'conformance/cli/completion.cc', 'conformance/cli/partition/partition_table.cc', 'conformance/cli/schedule/simulate_report.cc',
            'conformance/cli/actions/mutants.cc', 'bench/page/', 'bench/peers/step_report.cc')  # fmt: skip
SOURCES = [file for room in ROOMS for file in sorted(str(path.relative_to(ROOT)) for path in (ROOT / room).rglob('*.cc'))
           if '_test' not in file and '/testing/' not in file and '/tests/' not in file and not file.startswith(VERDICTS)]
OTHERS = ['runtime/microbatch/targets.h', 'conformance/protocol/command/command_backend.h']
PACKAGE = 'conformance/python/plumbline_case'
PYTHON_SOURCES = ['conformance/python/plumbline_recorder.py',
                  *(f'{PACKAGE}/{name}.py' for name in ('supervise', 'judge', 'tensors', 'regular', 'loading', 'doctor', 'seal',
                                                        'report_folder', 'run', 'expectation', 'stopping', 'number_text',
                                                        'torch_distributed/forked', 'torch_distributed/leftovers', 'results',
                                                        'torch/tensors'))]  # fmt: skip
STRING = r'"(?:[^"\\\n]|\\.)*"'
TELLS = re.compile(r'\b(throw|settle|broken|not_started|cannot_read|said_of|expect|refused?|problems|differences)\b|return "|'
                   r'return \w+ \+ "|\b(fail|problem|complain|abort|execute_beside|run_side)\(|\b(fail|refuse|must)_\w+\(|'
                   r'\brequire(_\w+)?\(|\breport_?\.add\(|Error>?\(|'
                   r'\b(error_?|reason|why|expected|accepted|unsupported|advice) = ')
# A new line, and what printf replaces.
PRINTED = re.compile(r'\\n|%[-+*.\d]*[lz]*[sdufg]\b')
# Findings of the doctor that are no faults, the examination of the machine, and misuse of a transport by plumbline's own code;
# in an export, kinds without a name; of a partition,
# the title of its drawing and its statistics; of a proof, answers without a name; bounds, which the oracle makes in one piece;
# of a simulation, what the least time of a step follows from; the help of --expect, and checks that passed.
NOT_FOR_USERS = ('case 0 began and was done', 'mpirun started', 'three ones do not add up', "every rank sees rank 0's",
                 'no clock differs', 'the largest difference', 'measured to', 'timelines put all ranks', 'one rank: nothing', 'ranks are 0 to',
                 'tags are 0 to', 'the request is not outstanding', 'starts Python programs: not tried by itself',
                 'a stub: it proves order and lifetimes', 'gold is saved, blue runs', 'Ops banned from re-materialization',
                 'Theoretical Activations Stored', 'Theoretical Per Activation', '# remat/fw/bw', 'Count of Ops Rematerialized',
                 'Compare the results with these', 'all are unchanged since the export', 'passes as recorded',
                 'unknown loss', 'bounded truth of', 'is incomplete: value, bound',
                 'one micro-batch through all stages', 'before its first action', 'the link from rank', 'is busy for')
# In Python every text with words counts that is none of these: names, and findings of the doctor that are no faults.
NO_ERRORS = ('more tensor', 'starts Python programs: not tried', 'case 0 began and was done', 'the class', 'any schedule',
             'is supported; of', 'can be read, the first is', 'an empty list', 'plumbline-case backend', 'not tried',
             'one process acts as all ranks', 'without a case in this corpus', 'run: ended with exit code 0', 'result files',
             'first comparison', 'unless equal')  # fmt: skip
FEWEST_LETTERS = 8


def statements(text):
    """The statements of a C++ source: what stands between semicolons and braces that are in no string."""
    text = re.sub(rf"({STRING})|//[^\n]*", lambda match: match[1] or '', text)
    return re.findall(rf"(?:{STRING}|'(?:[^'\\]|\\.)'|[^;{{}}\"'])+", text)


def literals(statement):
    """Its strings as they are printed, adjacent ones joined."""
    joined = re.sub(r'"\s*\n\s*"', '', statement)
    joined = re.sub(rf"({STRING})|'(?:[^'\\]|\\.)'", lambda match: match[1] or '', joined)  # no single characters
    return [string[1:-1].replace('\\"', '"').replace('\\\\', '\\') for string in re.findall(STRING, joined)]


def python_texts(source):
    """The strings of a Python source, and the parts of its f-strings; not its docstrings and regular expressions."""
    tree = ast.parse(source)
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            left_out.add(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and getattr(node.func.value, 'id', '') == 're':
            left_out.update(ast.walk(node))
    return [node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in left_out]  # fmt: skip


def letters(text):
    return len(re.findall('[a-z]', text))


def words(text):
    return ' '.join(text.split()).strip(' :;,`\'"().')


def plain(text):
    """Without the marks around and between words that messages and the page have differently."""
    return words(re.sub("[`'\"]", '', text))


@functools.cache
def statements_of(file):
    return statements((ROOT / file).read_text(encoding='utf-8'))


def told():
    """The longer parts of all messages of SOURCES, with their files."""
    for file in SOURCES:
        for statement in statements_of(file):
            if TELLS.search(statement):
                parts = (part for literal in literals(statement) for part in PRINTED.split(literal))
                yield from ((file, words(part)) for part in parts if has_words(part))


def told_by_python():
    for file in PYTHON_SOURCES:
        for text in python_texts((ROOT / file).read_text(encoding='utf-8')):
            if has_words(text) and not words(text).startswith(NO_ERRORS):
                yield file, words(text)


def has_words(text):
    return letters(text) >= FEWEST_LETTERS and ' ' in words(text)


def messages(page):
    """The first cells of the tables, with their lines."""
    for number, line in enumerate(page.splitlines(), 1):
        if match := re.match(r'\| (`+)(.+?)\1 \|', line):
            yield number, match[2].strip()


def parts(message):
    """What stands between the words in capitals and the semicolons."""
    found = [plain(part) for part in re.split(r"\b[A-Z]+\b|\.\.\.|;|F32", message)]
    return [part for part in found if letters(part) >= FEWEST_LETTERS]


def is_put_together(part, strings):
    """Whether the text falls into pieces of strings of the sources. A single word is a piece only if it is a whole string."""
    whole, all_of_them = strings
    left = part.split()
    while left:
        pieces = (n for n in range(len(left), 0, -1) if ' '.join(left[:n]) in (whole if n == 1 else all_of_them))
        most = next(pieces, 0)
        if not most:
            return False
        left = left[most:]
    return True


class ErrorsPage(unittest.TestCase):
    def setUp(self):
        self.pages = {page: (ROOT / page).read_text(encoding='utf-8').replace(r'\|', '|') for page in PAGES}

    def test_every_message_of_the_sources_is_on_the_page(self):
        text = '\n'.join(self.pages.values())
        for found in ([part for part in told() if not part[1].startswith(NOT_FOR_USERS)], list(told_by_python())):
            self.assertGreater(len(found), 40)
            for file, part in found:
                with self.subTest(file):
                    self.assertTrue(part in text, f'{file} says it, no page does: {part}')

    def test_every_message_of_the_page_is_in_the_sources(self):
        strings = [plain(part) for file in SOURCES + OTHERS
                   for statement in statements_of(file) for literal in literals(statement)
                   for part in (literal, *literal.split(';'), *PRINTED.split(literal))]  # fmt: skip
        strings += [plain(text) for file in PYTHON_SOURCES for text in python_texts((ROOT / file).read_text(encoding='utf-8'))]
        strings = set(strings), '\n'.join(strings)
        found = [(f'{page}:{line}', message) for page, text in self.pages.items() for line, message in messages(text)]
        self.assertGreater(len(found), 50)
        for place, message in found:
            for part in parts(message):
                with self.subTest(place):
                    self.assertTrue(is_put_together(part, strings), f'the sources do not say: {part}')


if __name__ == '__main__':
    unittest.main()
