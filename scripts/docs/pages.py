"""The Markdown pages: their fenced blocks, and the commands and sample outputs in them.

A block of commands has the language `sh` (a command a line) or `console` (`$ ` before each command; the lines after it
are a sample of its output, in which a line `...` stands for any text). A comment directly above a block of another
language tells what the block is held against:

  <!-- excerpt: PATH -->        its lines are lines of that file, in one piece
  <!-- file: NAME -->           it is written to NAME before the page's later commands run
  <!-- json: SCHEMA -->         it is JSON that conformance/schema/SCHEMA.schema.json accepts; without braces around it,
                                members of such an object
  <!-- not checked: REASON -->  nothing
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

COMMAND_LANGUAGES = ('sh', 'console')
NOTE = re.compile(r'<!-- (excerpt|file|json|not checked): (.+) -->')
FENCE = re.compile(r'(`{3,})(\w*)\s*')
INLINE = re.compile(r'(?<!`)`((?:build/)?plumbline(?:-bench)? [^`]+|scripts/[^` ]+[^`]*)`(?!`)')


class PageError(Exception):
    """A page that breaks a rule above; the text begins with `page:line: `."""


@dataclass
class Block:
    page: str
    line: int  # of the opening fence, from 1
    language: str
    lines: list
    note: tuple = None  # (kind, text)

    @property
    def place(self):
        return f'{self.page}:{self.line}'


@dataclass
class Step:
    """A command of a page, and the sample of its output that the page shows."""
    page: str
    line: int
    command: str
    sample: list = field(default_factory=list)

    @property
    def place(self):
        return f'{self.page}:{self.line}'


def read_pages(root):
    """{path relative to root: text} of every page but docs/cli.md, which is the program's own text."""
    files = [root / 'README.md', root / 'CONTRIBUTING.md', root / 'conformance/INTERPRETING.md', *sorted((root / 'docs').glob('*.md'))]
    return {file.relative_to(root).as_posix(): file.read_text(encoding='utf-8') for file in files if file.name != 'cli.md'}


def blocks_of(page, text):
    """The fenced blocks of a page, in order. Throws PageError for a block that never ends."""
    blocks, opened, above = [], None, ''
    for number, line in enumerate(text.splitlines(), 1):
        fence = FENCE.fullmatch(line)
        if opened and line == opened[0]:
            blocks.append(opened[1])
            opened = None
        elif opened:
            opened[1].lines.append(line)
        elif fence:
            note = NOTE.fullmatch(above)
            opened = fence[1], Block(page, number, fence[2], [], (note[1], note[2]) if note else None)
        if line.strip():
            above = line
    if opened:
        raise PageError(f'{opened[1].place}: the block is never closed')
    return blocks


def why_unchecked(block):
    """Why nothing could check this block; None if something does."""
    if not block.language:
        return 'a block without a language; expected sh or console for commands'
    if block.language not in COMMAND_LANGUAGES and not block.note:
        return ('nothing checks this block; expected <!-- excerpt: PATH -->, <!-- file: NAME -->, <!-- json: SCHEMA --> '
                'or <!-- not checked: REASON --> above it')
    return None


def without_comment(line):
    """The command of a line, without the comment after it and with single spaces."""
    quoted = re.compile(r"""("[^"]*"|'[^']*'|[^"'#]|(?<=\S)#)*""")
    return ' '.join(quoted.match(line)[0].split())


def steps_of(block):
    """The commands of a block, in order; none for a block that is no commands."""
    if block.language not in COMMAND_LANGUAGES:
        return []
    steps, pending, begun = [], '', 0
    for number, line in enumerate(block.lines, block.line + 1):
        is_command = block.language == 'sh' or pending or line.startswith('$ ')
        if not is_command:
            if not steps:
                raise PageError(f'{block.page}:{number}: output without a command; expected "$ " and the command above it')
            steps[-1].sample.append(line)
            continue
        begun = begun if pending else number
        line = pending + (line.removeprefix('$ ') if block.language == 'console' and not pending else line.strip())
        pending = line[:-1] if line.endswith('\\') else ''
        command = '' if pending else without_comment(line)
        if command:
            steps.append(Step(block.page, begun, command))
    return steps


def inline_commands(page, text):
    """The commands between single backquotes in the prose of a page, with their lines."""
    fenced, steps = False, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith('```'):
            fenced = not fenced
        elif not fenced:
            steps += [Step(page, number, found[1]) for found in INLINE.finditer(line)]
    return steps


def links_of(text):
    """(line, target) of every link to a file of this project."""
    return [(number, target) for number, line in enumerate(text.splitlines(), 1)
            for target in re.findall(r'\]\(([^)\s]+)\)', line) if '://' not in target]


def anchors_of(text):
    """The headings of a page as links name them."""
    headings = re.findall(r'(?m)^#+ (.+)$', text)
    return {re.sub(r'[^\w\- ]', '', heading.lower()).replace(' ', '-') for heading in headings}


def same_text(sample, output, any_numbers=False):
    """Whether the output is the sample, word by word, except for durations, folders and what `...` stands for; with
    `any_numbers` also except for all numbers."""
    def plain(text):
        text = without_chance(text)
        return re.sub(r'-?\b\d+(\.\d+)?(e-?\d+)?\b', '<number>', text) if any_numbers else text

    pieces = [' '.join(plain(piece).split()) for piece in re.split(r'(?m)^\s*\.\.\.\s*$', '\n'.join(sample))]
    expression = '(.* )?'.join(re.escape(piece + ' ') if piece else '' for piece in pieces)
    return re.fullmatch(expression, ' '.join([*plain(output).split(), '']), re.DOTALL) is not None


def without_chance(text):
    """The text without what differs from run to run: durations, temporary folders, the commit."""
    text = re.sub(r'\b\d+(\.\d+)? ?(s|ms|us|min)\b', '<time>', text)
    text = re.sub(r'/\S*/(?=[\w.-]+)', '', text)
    return re.sub(r'\b[0-9a-f]{12}(-dirty)?\b', '<commit>', text)
