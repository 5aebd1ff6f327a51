"""scripts/nightly's resuming and limit, on a tree of stubs, and the examples that start it."""

import datetime
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / 'scripts/examples'
STUB = '#!/bin/sh\necho "$(basename "$0") $*" >>"$STUB_LOG"\nif [ -e "$STUB_FAILS.$(basename "$0")" ]; then exit 5; fi\n'


class Resuming(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for stub in ('scripts/setup', 'scripts/odr', 'scripts/batches', 'build/plumbline', 'build/plumbline-bench'):
            (self.root / stub).parent.mkdir(exist_ok=True)
            (self.root / stub).write_text(STUB)
            (self.root / stub).chmod(0o755)
        shutil.copy(ROOT / 'scripts/nightly', self.root / 'scripts/nightly')
        self.log = self.root / 'log'

    def nightly(self, *words, code):
        self.log.write_text('')
        environment = {**os.environ, 'STUB_LOG': str(self.log), 'STUB_FAILS': str(self.root / 'fails')}
        done = subprocess.run([self.root / 'scripts/nightly', '--seed', '1', *words], capture_output=True, text=True, timeout=60,
                              env=environment, cwd=self.root)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.ran = [line for line in self.log.read_text().splitlines() if not line.startswith('setup')]
        return done.stdout + done.stderr

    def test_a_resumed_night_runs_what_is_left_and_counts_the_rest(self):
        (self.root / 'fails.batches').touch()
        self.assertIn('1 passed, 1 failed, 0 skipped', self.nightly('batches', 'alarm', code=1))
        self.assertEqual(self.ran, ['batches ', 'plumbline-bench alarm'])
        text = self.nightly('--resume', 'batches', 'alarm', 'odr', code=1)
        self.assertEqual(self.ran, ['odr ', 'odr --plant'])
        self.assertIn('batches ... before: FAILED, exit 5', text)
        self.assertIn('3 passed, 1 failed, 0 skipped', text)

    def test_the_page_has_every_step(self):
        (self.root / 'fails.batches').touch()
        (self.root / 'build/plumbline-bench').write_text('#!/bin/sh\necho "no engine | no alarm"\nexit 77\n')
        self.nightly('batches', 'alarm', code=1)
        self.nightly('--resume', 'batches', 'alarm', 'odr', code=1)
        page = (self.root / 'plumbline-nightly/nightly.md').read_text()
        self.assertIn('commit unknown, seed 1; ', page)
        self.assertIn('| batches | **failed**, exit 5 | 0.0 |\n| alarm | skipped: no engine \\| no alarm | 0.0 |\n| odr | passed | 0.0 |\n', page)
        self.assertIn('2 passed, 1 failed, 1 skipped; 0.0 hours.\n', page)

    def test_without_resume_everything_runs_again(self):
        self.nightly('alarm', code=0)
        self.nightly('alarm', code=0)
        self.assertEqual(self.ran, ['plumbline-bench alarm'])

    def test_a_limit_leaves_steps_for_resume(self):
        (self.root / 'scripts/setup').write_text('#!/bin/sh\nsleep 1.1\n')
        text = self.nightly('--limit', '0', 'alarm', 'batches', code=3)
        self.assertIn('0 passed, 0 failed, 0 skipped, 2 not started', text)
        self.assertEqual(self.ran, [])
        self.assertIn('2 passed', self.nightly('--resume', 'alarm', 'batches', code=0))

    def test_another_seed_is_not_resumed(self):
        self.nightly('alarm', code=0)
        self.assertIn('this is commit unknown, seed 2', self.nightly('--resume', '--seed', '2', 'alarm', code=2))

    def test_successive_nights_do_all_of_a_divided_step(self):
        names = [f'mutant-{i}' for i in range(50)]
        (self.root / 'build/plumbline').write_text(STUB + f"""[ "$2" != --json ] || echo '{json.dumps([{'name': name} for name in names])}'\n""")
        (self.root / 'scripts/sanitizers').write_text(STUB)
        (self.root / 'scripts/sanitizers').chmod(0o755)
        tried, kinds = [], []
        for day in range(8):  # over the end of a month
            seed = (datetime.date(2026, 1, 28) + datetime.timedelta(day)).strftime('%Y%m%d')
            self.nightly('mutants', 'sanitizers', '--seed', seed, code=1)
            words = next(line for line in self.ran if '--full' in line).split()
            tried += words[words.index('--mutant') + 1].split(',')
            kinds += [line for line in self.ran if line.startswith('sanitizers')]
        self.assertEqual(sorted(tried), sorted(names))
        self.assertEqual(sorted(kinds), 4 * ['sanitizers --whole address'] + 4 * ['sanitizers --whole thread'])

    def test_the_part_that_got_worse_is_measured_twice(self):
        (self.root / 'scripts/bench_instructions').write_text('#!/bin/sh\nexit 3\n')
        (self.root / 'scripts/bench_instructions').chmod(0o755)
        bench = self.root / 'build/plumbline-bench'
        changes = 'regressed   micro/a/1 real_time: 1 s -> 2 s\nimproved    proof/b real_time: 2 s -> 1 s\n'
        judge = f"case $1 in history) printf '{changes}'; exit $(cat \"$STUB_FAILS.judge\") ;; esac\n"
        bench.write_text(STUB + judge)
        for verdict, code, measured, word in (('0', 0, 1, 'passed'), ('1', 1, 2, 'FAILED'), ('3', 1, 1, 'skipped')):
            (self.root / 'fails.judge').write_text(verdict)
            text = self.nightly('bench', code=code)
            self.assertIn(f'nightly: bench ... {word}', text)
            self.assertEqual(sum(line.startswith('plumbline-bench micro') for line in self.ran), measured)
            self.assertEqual(sum(line.startswith('plumbline-bench proof') for line in self.ran), 1)


class Examples(unittest.TestCase):
    def test_shell(self):
        for script in (EXAMPLES / 'nightly.sbatch', ROOT / 'scripts/nightly', ROOT / 'scripts/bench_instructions'):
            subprocess.run(['bash', '-n', script], check=True)
        if not shutil.which('shellcheck'):
            self.skipTest('bash read them; there is no shellcheck')
        done = subprocess.run(['shellcheck', '--severity=error', EXAMPLES / 'nightly.sbatch', ROOT / 'scripts/nightly'],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_systemd(self):
        if not shutil.which('systemd-analyze'):
            self.skipTest('there is no systemd-analyze')
        with tempfile.TemporaryDirectory() as folder:
            for unit in EXAMPLES.glob('plumbline-nightly.*'):
                text = unit.read_text(encoding='utf-8').replace('/opt/plumbline', str(ROOT))
                (Path(folder) / unit.name).write_text(text, encoding='utf-8')
            units = sorted(Path(folder).iterdir())
            self.assertEqual(len(units), 2)
            done = subprocess.run(['systemd-analyze', 'verify', *units], capture_output=True, text=True, timeout=60)
            own = [line for line in done.stderr.splitlines() if 'plumbline' in line]
            self.assertEqual((done.returncode, own), (0, []), done.stderr)

    def test_workflow(self):
        try:
            import yaml
        except ImportError:
            self.skipTest('there is no PyYAML')
        workflow = yaml.safe_load((EXAMPLES / 'nightly.yml').read_text(encoding='utf-8'))
        steps = workflow['jobs']['nightly']['steps']
        commands = [step['run'] for step in steps if 'run' in step]
        self.assertTrue(any('scripts/nightly' in command for command in commands))
        for command in commands:
            subprocess.run(['bash', '-n'], input=command, text=True, check=True)

    def test_their_options_exist(self):
        usage = subprocess.run([ROOT / 'scripts/nightly', '--help'], capture_output=True, text=True, check=True).stdout
        for example in EXAMPLES.iterdir():
            for line in example.read_text(encoding='utf-8').replace('\\\n', ' ').splitlines():
                if 'scripts/nightly' in line and not line.lstrip().startswith('#'):
                    for word in line.split('scripts/nightly')[1].split():
                        if word.startswith('--'):
                            self.assertIn(word, usage, example.name)


if __name__ == '__main__':
    unittest.main()
