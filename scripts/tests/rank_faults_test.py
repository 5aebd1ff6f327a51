#!/usr/bin/env python3
"""plumbline's own ranks under mpirun with a fault below MPI in one of them (runtime/testing/hostile_mpi.cc): each ends in time
and is named. Without PLUMBLINE_IN_FULL (scripts/nightly) a few of them.

PLUMBLINE names the program, HOSTILE_MPI_FILE the library.
"""

import json
import os
import re
import subprocess
import tempfile
import time
import unittest
import uuid
from pathlib import Path

PROGRAM = os.environ['PLUMBLINE']
LIBRARY = os.environ['HOSTILE_MPI_FILE']
MODEL = str(Path(__file__).parents[2] / 'runtime/capture/pt2/testdata/tied/model.pt2')
IN_FULL = bool(os.environ.get('PLUMBLINE_IN_FULL'))
SECONDS = 300  # until a run has hung
FIRST, SECOND = 'exact-mlp-sum', 'exact-mlp-mean'
KILLED = r'EXIT STRING: Killed \(signal 9\)|exited on signal 9|KILLED BY SIGNAL: 9|KILLED_BY_SIGNAL: 9|killed by signal 9'
NO_MESSAGE = r"rank 0, position \d+ \(0B3\): no message from rank 1 within 3 s: stage 0, micro-batch 3, gradient of 'layers.3'"
# (fault, exit code, status of the first case, what is said of it). The fourth message of rank 1 is the last of the first case.
FAULTS = (
    ('killed-sending', 1, 'error', KILLED),
    ('dropped', 1, 'error', NO_MESSAGE),
    ('doubled', 1, 'error', 'rank 0: a message of rank 1 with tag 7 is left when all have been received'),
)
MORE_FAULTS = (
    ('none', 0, 'pass', ''),
    ('killed-at-start', 3, 'not-run', KILLED),
    ('killed-receiving', 1, 'error', KILLED),
    ('slow', 0, 'pass', ''),
    ('out-of-memory', 1, 'error', "can't allocate memory"),
    ('stopped', 1, 'error', NO_MESSAGE + '.*; rank 0 waits for rank 1, whose process is stopped'),
    ('reordered', 1, 'error', NO_MESSAGE),
    ('cut', 1, 'error', 'message from rank 1 with tag 7 has 32 bytes, expected 64'),
    ('longer', 1, 'error', 'message from rank 1 with tag 7 has 128 bytes, expected 64'),
    ('wrong-tag', 1, 'error', NO_MESSAGE),
    ('wrong-bytes', 1, 'fail', 'step 0, stage 0, micro-batch 3: partial gradient'),
)


class RankFaults(unittest.TestCase):
    def run_with(self, fault):
        """(exit code, standard output, {case: (status, sentence)})"""
        mark = uuid.uuid4().hex
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder, 'temporary')
            temporary.mkdir()
            launcher = 'mpirun -n {np} env LD_PRELOAD=' + LIBRARY
            words = ['run', '--case', f'{FIRST},{SECOND}', '--schedule', 'gpipe', '--ranks', '2', '--transport', 'mpi', '--timeout', '3',
                     '--launcher', launcher, '--report', f'{folder}/report']
            environment = {**os.environ, 'HOSTILE_MPI': f'{fault} 1', 'HOSTILE_MARK': mark, 'TMPDIR': str(temporary)}
            done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=SECONDS, env=environment)
            verdicts = json.loads(Path(folder, 'report/report.json').read_text(encoding='utf-8'))['verdicts']
            self.assertEqual(self.left(mark), [], 'processes are left')
            self.assertEqual([file.name for file in temporary.iterdir() if not file.name.startswith('ompi.')], [])
        return done.returncode, done.stdout, {v['case']: (v['status'], v['sentence']) for v in verdicts}

    @staticmethod
    def left(mark):
        """The processes with this word in their environment; those that were killed may take a moment."""
        found = []
        for _ in range(100):
            found = []
            for process in Path('/proc').glob('[0-9]*/environ'):
                try:
                    if mark.encode() in process.read_bytes():
                        found.append(process.parent.name)
                except OSError:
                    pass
            if not found:
                break
            time.sleep(0.1)
        return found

    def test_each_is_named_and_costs_its_case(self):
        for fault, code, status, said in FAULTS + (MORE_FAULTS if IN_FULL else ()):
            with self.subTest(fault):
                found, printed, verdicts = self.run_with(fault)
                self.assertEqual(found, code, printed)
                self.assertEqual(verdicts[FIRST][0], status, verdicts)
                self.assertTrue(re.search(said, verdicts[FIRST][1]), verdicts)
                # In a new start the fourth message is again the last one of a case.
                self.assertEqual(verdicts[SECOND][0], 'pass' if status == 'fail' else status, verdicts)

    def test_a_death_under_mpirun_itself_keeps_what_was_judged(self):
        """The sixth message belongs to the second case. Without a runner beside it mpirun ends the whole run."""
        environment = {**os.environ, 'HOSTILE_MPI': 'killed-sending 1 6', 'OMPI_ALLOW_RUN_AS_ROOT': '1', 'OMPI_ALLOW_RUN_AS_ROOT_CONFIRM': '1'}
        with tempfile.TemporaryDirectory() as folder:
            ran = subprocess.run(['mpirun', '-n', '2', 'env', f'LD_PRELOAD={LIBRARY}', PROGRAM, 'run', '--case', f'{FIRST},{SECOND}', '--schedule', 'gpipe',
                                  '--report', f'{folder}/report'], capture_output=True, text=True, timeout=SECONDS, env=environment)
            self.assertRegex(ran.stdout + ran.stderr, KILLED)
            checked = subprocess.run([PROGRAM, 'check', f'{folder}/report'], capture_output=True, text=True, timeout=SECONDS)
            verdicts = [json.loads(line) for line in Path(folder, 'report/results.jsonl').read_text(encoding='utf-8').splitlines()]
        self.assertEqual([(v['case'], v['status']) for v in verdicts], [(FIRST, 'pass')])
        self.assertIn('+ pass 1   ? not-run 1', checked.stdout)
        self.assertIn('the folder is consistent', checked.stdout)

    def test_a_program_names_who_waits(self):
        environment = {**os.environ, 'HOSTILE_MPI': 'dropped 1'}
        words = ['run', '--program', MODEL, '--stages', '2', '--schedule', 'gpipe', '--transport', 'mpi', '--timeout', '3', '--launcher',
                 'mpirun -n {np} env LD_PRELOAD=' + LIBRARY]
        ran = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=SECONDS, env=environment)
        self.assertEqual(ran.returncode, 1, ran.stdout + ran.stderr)
        self.assertRegex(ran.stdout + ran.stderr, 'rank 0.*: no message from rank 1 within 3 s: .*; a cycle of waits: rank 0 waits for rank 1 since .*, rank 1 waits for rank 0 ')

    @unittest.skipUnless(IN_FULL, 'in scripts/nightly')
    def test_a_rank_that_stops_after_the_last_case_costs_none(self):
        code, printed, verdicts = self.run_with('stopped-at-the-end')
        self.assertEqual((code, {status for status, _ in verdicts.values()}), (1, {'pass'}), printed)
        self.assertRegex(printed, 'BROKEN .*rank 0: another rank has not left MPI within 60 s; it is stopped or lost')

    @unittest.skipUnless(IN_FULL, 'in scripts/nightly')
    def test_a_rank_that_dies_after_the_last_case_costs_none(self):
        code, printed, verdicts = self.run_with('killed-at-the-end')
        self.assertEqual((code, {status for status, _ in verdicts.values()}), (1, {'pass'}), printed)
        self.assertRegex(printed, f'BROKEN plumbline runtime on 2 ranks failed between two cases: .*({KILLED})')


if __name__ == '__main__':
    unittest.main()
