"""What `--help` of the programs and of each of their subcommands says."""

import os
import re
import shlex
import subprocess
import sys


def subcommands_of(text):
    """The names in the list of subcommands of a help text."""
    listed = re.search(r'(?ms)^(?:Subcommands|SUBCOMMANDS):\n(.*?)(?:\n\n|\Z)', text)
    return re.findall(r'(?m)^  ([a-z][\w-]*)', listed[1]) if listed else []


class Help:
    def __init__(self, program):
        self.program, self.texts = program, {}
        self.has_bench = program.with_name('plumbline-bench').exists()  # not built without Google Benchmark

    def of(self, words=()):
        """The help of a subcommand, (): of the program. Throws CalledProcessError if there is no such subcommand."""
        words = tuple(words)
        if words not in self.texts:
            made = subprocess.run(['plumbline', *words, '--help'], executable=self.program, capture_output=True, text=True,
                                  check=True, timeout=60)
            self.texts[words] = made.stdout
        return self.texts[words]

    def all(self, words=()):
        """Every subcommand as its words, in the order of the help texts, subcommands of subcommands after their own."""
        for name in subcommands_of(self.of(words)):
            if name == 'help':  # `plumbline help X` says what `plumbline X --help` says
                continue
            yield (*words, name)
            yield from self.all((*words, name))

    def what_is_wrong(self, command):
        """Why the program would refuse a command of a page: its subcommand or an option; None if it would not."""
        words, known = command.split()[1:], ()
        while words and words[0] in subcommands_of(self.of(known)):
            known = (*known, words.pop(0))
        if not known and words and re.fullmatch('[a-z-]+', words[0]) and not words[0].startswith('-'):
            return f'no subcommand {words[0]}; expected one of {", ".join(subcommands_of(self.of()))}'
        # A word in quotes may hold options of another program; those of Google Benchmark are in no help text of ours.
        given = [word for word in shlex.split(' '.join(words)) if ' ' not in word]
        for option in re.findall(r'(?<![\w-])--(?!benchmark_)[a-z][\w-]*', ' '.join(given)):
            if not re.search(re.escape(option) + r'(?![\w-])', self.of(known)):
                return f'{" ".join(("plumbline", *known))} has no option {option}'
        return None


class WheelHelp:
    """Of plumbline-case, from the sources."""

    NEEDS = 'numpy'

    def __init__(self, root):
        self.environment = {**os.environ, 'PYTHONPATH': str(root / 'conformance/python'), 'COLUMNS': '120'}

    def can_start(self):
        return subprocess.run([sys.executable, '-c', f'import {self.NEEDS}'], capture_output=True).returncode == 0

    def of(self, words=()):
        made = subprocess.run([sys.executable, '-B', '-m', 'plumbline_case', *words, '--help'], env=self.environment,
                              capture_output=True, text=True, check=True, timeout=60)
        return made.stdout

    def all(self):
        """Every subcommand as its words, in the order of the help text."""
        return [(name,) for name in re.findall(r'(?m)^    ([a-z]+)\b', self.of())]
