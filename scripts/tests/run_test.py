"""scripts/run before the first build, on a stub of scripts/setup: options that do not exist are refused."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILDS = '#!/bin/sh\necho "setup $*"\nexit 7\n'


class RunTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / 'scripts').mkdir()
        (self.root / 'docs').mkdir()
        shutil.copy(ROOT / 'scripts/run', self.root / 'scripts')
        shutil.copy(ROOT / 'docs/cli.md', self.root / 'docs')
        setup = self.root / 'scripts/setup'
        setup.write_text(BUILDS)
        setup.chmod(0o755)

    def run_with(self, *words):
        return subprocess.run([self.root / 'scripts/run', *words], capture_output=True, text=True, timeout=60)

    def test_an_option_that_does_not_exist_is_refused_before_the_build(self):
        for words in (['--profil', 'smoke'], ['--profil=smoke'], ['--ranks', '2', '--transports', 'mpi']):
            done = self.run_with(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ''), words)
            self.assertRegex(done.stderr, r'^run: --(profil|transports): not an option .* --profile .*\n$')

    def test_options_that_exist_are_built_for(self):
        for words in ([], ['--profile', 'smoke', '-v'], ['--ranks=2,4', '--case', '*'], ['--nccl', 'l.so'], ['--list', '--remat', 'default']):
            done = self.run_with(*words)
            self.assertEqual((done.returncode, done.stdout), (7, 'setup --build first-run\n'), (words, done.stderr))

    def test_with_a_program_its_own_parser_decides(self):
        (self.root / 'build').mkdir()
        program = self.root / 'build/plumbline'
        program.write_text('')
        program.chmod(0o755)
        self.assertEqual(self.run_with('--of-tomorrow').returncode, 7)


if __name__ == '__main__':
    unittest.main()
