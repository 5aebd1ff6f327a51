"""scripts/fuzz/run on a tree of stubs: its last line and exit code tell readers that were skipped from those that passed."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

FUZZ = Path(__file__).resolve().parents[1] / 'fuzz'
NO_CLANG = 'no Clang 16 or newer with libFuzzer (clang-16, libclang-rt-16-dev)'
NO_SYMBOLIZER = 'no llvm-symbolizer (llvm-16)'
NO_ATHERIS = 'no Atheris (pip install atheris numpy)'
# In place of the fuzzers, and of the Python that imports Atheris.
FUZZER = '#!/bin/sh\necho "stat::number_of_executed_units: 9"\n[ "$PLUMBLINE_READER" != "$FAILS" ]\n'
PYTHON = f'#!/bin/sh\nif [ "$1" = -c ]; then exit $LACKS_ATHERIS; fi\n{FUZZER}'


class Fuzz(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        shutil.copytree(FUZZ, self.root / 'scripts/fuzz')
        for stub, text in (('scripts/setup', f'#!/bin/sh\n[ "$1" != --print-env ] || echo \'PATH={self.root}/bin:$PATH\'\n'),
                           ('bin/python3', PYTHON), ('bin/clang', '#!/bin/sh\nexit 0\n'), ('build-fuzz/scripts/fuzz/fuzz_readers', FUZZER), ('build-fuzz/scripts/fuzz/fuzz_torch_readers', FUZZER)):
            (self.root / stub).parent.mkdir(parents=True, exist_ok=True)
            (self.root / stub).write_text(text)
            (self.root / stub).chmod(0o755)

    def fuzz(self, *readers, clang=True, symbolizer=True, atheris=True, fails=''):
        """(exit code, last line)"""
        environment = {**os.environ, 'CXX_FUZZ': str(self.root / 'bin/clang') if clang else 'false',
                       'LACKS_ATHERIS': '0' if atheris else '1', 'FAILS': fails,
                       'ASAN_SYMBOLIZER_PATH': 'llvm-symbolizer' if symbolizer else ''}
        done = subprocess.run([self.root / 'scripts/fuzz/run', '--seconds', '1', *readers], capture_output=True, text=True,
                              timeout=60, env=environment)
        self.output = done.stdout + done.stderr
        return done.returncode, self.output.splitlines()[-1]

    def test_what_was_skipped_has_not_passed(self):
        some = ('csv', 'json', 'python_csv')
        self.assertEqual(self.fuzz(*some), (0, '3 passed, 0 failed, 0 skipped'))
        self.assertEqual(self.fuzz(*some, atheris=False), (77, f'2 passed, 0 failed, 1 skipped: {NO_ATHERIS}'))
        self.assertEqual(self.fuzz(*some, clang=False), (77, f'1 passed, 0 failed, 2 skipped: {NO_CLANG}'))
        self.assertEqual(self.fuzz(*some, clang=False, atheris=False), (77, f'0 passed, 0 failed, 3 skipped: {NO_ATHERIS}; {NO_CLANG}'))

    def test_readers_with_libtorch_need_a_symbolizer_too(self):
        both = ('csv', 'exported_program')
        self.assertEqual(self.fuzz(*both, symbolizer=False), (77, f'1 passed, 0 failed, 1 skipped: {NO_SYMBOLIZER}'))
        self.assertEqual(self.fuzz(*both, symbolizer=False, clang=False), (77, f'0 passed, 0 failed, 2 skipped: {NO_CLANG}'))

    def test_parts_together_are_all(self):
        def ran(*words):
            self.assertEqual(self.fuzz(*words)[0], 0, self.output)
            return sorted(line.split()[1] for line in self.output.splitlines() if line.startswith('passed '))

        parts = [ran('--part', f'{part}/3') for part in (1, 2, 3)]
        self.assertEqual(sorted(sum(parts, [])), ran())
        self.assertLessEqual(max(map(len, parts)) - min(map(len, parts)), 1)
        self.assertEqual(self.fuzz('--part', '4/3'), (2, 'fuzz: --part needs K/N, such as 1/4'))
        self.assertEqual(self.fuzz('--part', '2/2', 'csv'), (2, 'fuzz: --part 2/2: no reader is left'))

    def test_a_failure_counts_whatever_was_skipped(self):
        for reader in 'csv', 'python_csv':
            self.assertEqual(self.fuzz('csv', 'json', 'python_csv', fails=reader), (1, '2 passed, 1 failed, 0 skipped'))
            self.assertIn(f'FAILED   {reader}: ', self.output)
        self.assertEqual(self.fuzz('csv', 'python_csv', atheris=False, fails='csv'), (1, f'0 passed, 1 failed, 1 skipped: {NO_ATHERIS}'))

    def test_every_folder_of_the_corpus_has_its_readers(self):
        code, last = self.fuzz()
        self.assertEqual(code, 0, self.output)
        ran = {line.split()[1].rstrip(':') for line in self.output.splitlines() if line.startswith('passed ')}
        self.assertEqual({name.removeprefix('python_') for name in ran}, {folder.name for folder in (FUZZ / 'corpus').iterdir()})
        self.assertLess({'safetensors', 'python_safetensors', 'python_case', 'exported_program'}, ran)

    def test_an_unknown_reader(self):
        code, last = self.fuzz('cvs')
        self.assertEqual((code, last[:58]), (2, "fuzz: unknown reader 'cvs', expected one of backend_file b"))


if __name__ == '__main__':
    unittest.main()
