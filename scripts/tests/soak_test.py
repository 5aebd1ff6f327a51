"""scripts/soak: it finds what a runner in place of plumbline does wrong, and a few rounds of plumbline itself have no finding.

PLUMBLINE names the program.
"""

import itertools
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'scripts'))

from soak_rounds import kind_of  # noqa: E402

# Answers as plumbline does; FAULT is a shell command in the middle of a run, $r the folder of its report, $verdicts its length.
RUNNER = '''#!/bin/bash
verdicts=1
case $1 in
  list) echo '[{"id": "a"}, {"id": "b"}]' ;;
  check) exit ${CHECK:-0} ;;
  run)
    all="$*"
    while [ $# -gt 1 ]; do r=$2; shift; done
    mkdir -p "$r"
    status=pass code=0
    sleep 0.5
    eval "$FAULT"
    sleep 0.5
    one=$(printf '{"case": "a", "schedule": "gpipe", "status": "%s", "sentence": "%s a x gpipe"}' $status $status)
    printf '{"verdicts": [%s' "$one" >"$r/report.json"
    for ((i = 1; i < verdicts; i++)); do printf ',%s' "$one" >>"$r/report.json"; done
    echo ']}' >>"$r/report.json"
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
    ('echo plumbline: nothing to run: a; exit 2', '1 rounds, 0 runs, 0 findings'),
    ('sleep 100', 'no end within 8.0 s'),
    ('setsid sleep 1000 >/dev/null 2>&1 &', 'processes are left: '),
    ('echo >"$TMPDIR/forgotten"', 'files are left in the temporary folder: forgotten'),
    ('for i in 1 2 3 4 5 6 7 8; do exec {d}</dev/null; done', 'open files grew from '),
    ('for i in 1 2 3 4 5 6 7 8; do sleep 1.5 & done', 'child processes grew from '),
)
# Takes 40 MB more in each of eight parts of a run, whose time is that of the pauses.
GROWS = 'for i in 1 2 3 4 5 6 7 8; do printf -v y "%40000000s"; x+=$y; sleep 0.5; done'
# In the fourth run of the soak at once, as a runner would of which each run leaves something for the next.
GROWS_OVER_ROUNDS = 'echo >>$COUNT; if [ $(wc -l <$COUNT) = 4 ]; then printf -v x "%200000000s"; fi'


def seed_of(*kinds):
    """The first one whose first rounds are of these kinds."""
    of_rounds = lambda seed: [kind_of(seed, number).kind for number, _ in enumerate(kinds, 1)]
    return next(seed for seed in itertools.count() if of_rounds(seed) == list(kinds))


class Soak(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.runner = self.folder / 'runner'
        self.runner.write_text(RUNNER)
        self.runner.chmod(0o755)

    def soak(self, program, seed, *words, **environment):
        self.out = self.folder / 'out'
        command = [ROOT / 'scripts/soak', '--program', program, '--seed', str(seed), '--out', self.out, *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **environment})
        self.assertTrue(done.stdout.startswith(f'soak: seed {seed}, '), done.stdout + done.stderr)
        return done

    def test_each_fault_of_a_runner_is_found(self):
        for fault, found in FINDINGS:
            with self.subTest(fault):
                done = self.soak(self.runner, seed_of('runtime'), '--rounds', '1', '--longest', '8', FAULT=fault)
                self.assertIn(found, done.stdout)
                self.assertEqual(done.returncode, 0 if found.endswith('0 findings') else 1, done.stdout)
        done = self.soak(self.runner, seed_of('runtime'), '--rounds', '1', FAULT='', CHECK='1')
        self.assertIn('exit code 0 for no failure, but check says 1', done.stdout)

    def test_memory_that_grows_in_a_long_round_is_found(self):
        self.assertEqual(kind_of(1, 3).kind, 'long')
        words = [self.runner, 1, '--from-round', '3', '--rounds', '1']
        done = self.soak(*words, FAULT=f'verdicts=1200; {GROWS}')
        self.assertRegex(done.stdout, r'FINDING in round 3 \(long\): memory grew from \d+ to \d+ MiB')
        self.assertIn('1 rounds, 0 runs, 1 findings', done.stdout)
        self.assertIn('1 rounds, 1200 runs, 0 findings', self.soak(*words, FAULT='verdicts=1200').stdout)

    def test_memory_that_grows_over_rounds_is_found(self):
        words = [self.runner, seed_of('backend', 'backend', 'long', 'backend', 'backend'), '--rounds', '5']
        count = self.folder / 'count'
        done = self.soak(*words, FAULT='case $all in *--backend*) ' + GROWS_OVER_ROUNDS + ';; esac', COUNT=str(count))
        self.assertRegex(done.stdout, r'FINDING in round 5 \(backend\): memory of backend rounds grew from \d+ to \d+ MiB')
        self.assertIn('5 rounds, 5 runs, 1 findings', done.stdout)

    def test_findings_are_repeated_from_their_file(self):
        self.soak(self.runner, seed_of('runtime', 'runtime'), '--rounds', '2', '--runs', '7', FAULT='status=fail code=1')
        findings = self.out / 'findings.txt'
        lines = findings.read_text().splitlines()
        said = 'runtime: fail a x gpipe (fault: none, expected pass)'
        self.assertEqual(lines, [f'{seed_of("runtime", "runtime")} {number} 7 {said}' for number in (1, 2)])
        kept = findings.rename(self.folder / 'kept.txt')
        done = self.soak(self.runner, 1, '--repeat', kept, FAULT='status=fail code=1')
        self.assertIn('2 rounds, 0 runs, 2 findings', done.stdout)
        self.assertEqual(findings.read_text().splitlines(), lines)
        self.assertIn('2 rounds, 2 runs, 0 findings', self.soak(self.runner, 1, '--repeat', kept, FAULT='').stdout)
        refused = subprocess.run([ROOT / 'scripts/soak', '--repeat', self.runner], capture_output=True, text=True)
        self.assertEqual(refused.returncode, 2)
        self.assertIn('expected the findings.txt of an earlier soak', refused.stderr)

    def test_plumbline_has_none(self):
        done = self.soak(os.environ['PLUMBLINE'], seed_of('backend', 'package', 'long', 'ranks', 'runtime'), '--rounds', '5', '--runs', '2')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn('5 rounds, ', done.stdout)


if __name__ == '__main__':
    unittest.main()
