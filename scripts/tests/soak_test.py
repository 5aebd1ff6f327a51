"""scripts/soak: it finds what a runner in place of plumbline does wrong, and a few rounds of plumbline itself have no finding.

PLUMBLINE names the program.
"""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Answers as plumbline does; FAULT is a shell command in the middle of a run, and $r the folder of its report.
RUNNER = '''#!/bin/bash
case $1 in
  list) echo '[{"id": "a"}, {"id": "b"}]' ;;
  check) exit ${CHECK:-0} ;;
  run)
    while [ $# -gt 1 ]; do r=$2; shift; done
    mkdir -p "$r"
    status=pass code=0
    sleep 0.5
    eval "$FAULT"
    sleep 0.5
    printf '{"verdicts": [{"case": "a", "schedule": "gpipe", "status": "%s", "sentence": "%s a x gpipe"}]}' $status $status >"$r/report.json"
    exit $code ;;
esac
'''
FINDINGS = (
    ('', '0 findings'),
    ('status=fail code=1', 'fail a x gpipe (fault: none, expected pass)'),
    ('code=1', 'exit code 1 for no failure'),
    ('status=fail', 'exit code 0 for some failures'),
    ('status=unsupported', 'exit code 0 for nothing that ran'),
    ('exit 2', 'exit code 2 and no report'),
    ('sleep 100', 'no end within 8.0 s'),
    ('setsid sleep 1000 >/dev/null 2>&1 &', 'processes are left: '),
    ('echo >"$TMPDIR/forgotten"', 'files are left in the temporary folder: forgotten'),
    ('for i in 1 2 3 4 5 6 7 8; do exec {d}</dev/null; done', 'open files grew from '),
    ('for i in 1 2 3 4 5 6 7 8; do sleep 0.6 & done', 'child processes grew from '),
)


class Soak(unittest.TestCase):
    def soak(self, program, seed, *words, **environment):
        with tempfile.TemporaryDirectory() as folder:
            command = [ROOT / 'scripts/soak', '--program', program, '--seed', str(seed), '--out', f'{folder}/out', *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **environment})
        self.assertTrue(done.stdout.startswith(f'soak: seed {seed}, '), done.stdout + done.stderr)
        return done

    def test_each_fault_of_a_runner_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            runner = Path(folder) / 'runner'
            runner.write_text(RUNNER)
            runner.chmod(0o755)
            for fault, found in FINDINGS:
                with self.subTest(fault):
                    # A round of this seed that has no faults of its own.
                    done = self.soak(runner, 3, '--rounds', '1', '--longest', '8', FAULT=fault)
                    self.assertIn(found, done.stdout)
                    self.assertEqual(done.returncode, 1 if fault else 0, done.stdout)
            done = self.soak(runner, 3, '--rounds', '1', FAULT='', CHECK='1')
            self.assertIn('exit code 0, but check says 1', done.stdout)

    def test_plumbline_has_none(self):
        # Of this seed: a round with faults, and one without.
        done = self.soak(os.environ['PLUMBLINE'], 11, '--rounds', '2', '--runs', '2')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn('2 rounds, ', done.stdout)


if __name__ == '__main__':
    unittest.main()
