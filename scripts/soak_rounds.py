"""The kinds of rounds of scripts/soak: what each starts, and what must become of it."""

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

from soak_watch import Usage, marked

ROOT = Path(__file__).resolve().parents[1]
PYTHON = ROOT / 'conformance/python'
HOSTILE = PYTHON / 'tests/hostile_backend.py'
SCHEDULES = ('gpipe', '1f1b', 'eager-1f1b', 'interleaved-1f1b', 'looped-bfs', 'zb-h1', 'zb-h2', 'zb-v', 'v-half', 'v-min', 'hanayo',
             'interleaved-zero-bubble', 'dualpipe-v', 'chimera', 'seq1f1b')  # fmt: skip
WIRES = ('', 'slow', 'poison', 'shuffle', 'slow,poison,shuffle')
NCCL_MODES = ('rendezvous', 'eager', 'late', 'poison', 'shuffle', 'apart', 'late,poison,shuffle,headers')
# What becomes of a run with the fault; those that hang take the time of a case. One row of two may be broadcast, silently.
FAULTS = {'slow': 'pass', 'leaves-children': 'pass', 'wrong-values': 'fail',
          'wrong-size': 'error or fail'} | dict.fromkeys(
    ('killed-at-start', 'killed-mid-step', 'killed-receiving', 'killed-at-the-end', 'killed-before-done', 'out-of-memory',
     'raises-in-forward', 'raises-in-backward', 'raises-in-hook', 'wrong-tag', 'wrong-dtype', 'dropped', 'doubled',
     'reordered', 'cut', 'half-a-file', 'outside-its-folder', 'no-file', 'crashes', 'exits', 'has-the-disk-full', 'says-nonsense',
     'leaves-children-and-crashes'), 'error') | dict.fromkeys(
    ('hangs', 'stopped', 'hangs-and-ignores-sigterm', 'floods-with-lines', 'floods-standard-error'), 'timeout')  # fmt: skip
# Of a rank, below MPI (hostile_mpi.cc): what becomes of the case whose last message is the fourth one of its rank.
RANK_FAULTS = {'none': 'pass', 'slow': 'pass', 'killed-at-the-end': 'pass', 'wrong-bytes': 'fail', 'killed-at-start': 'not-run'} | dict.fromkeys(
    ('killed-sending', 'killed-receiving', 'out-of-memory', 'stopped', 'dropped', 'doubled', 'reordered', 'cut', 'longer', 'wrong-tag'),
    'error')  # fmt: skip
SIMPLE_CASES = ('exact-mlp-sum', 'exact-mlp-mean')
HOSTILE_SCHEDULES = SCHEDULES[:12]
CASE_SECONDS, MESSAGE_SECONDS = 20, 10
LONG_EVERY, LONG_AT, LONG_TIMES = 20, 3, 20


# Exit codes.
ENDINGS = {'no failure': 0, 'some failures': 1, 'nothing that ran': 3}


class Finding(Exception):
    pass


def ending(statuses):
    return 'no failure' if statuses == {'pass'} else 'some failures' if statuses - {'not-run'} else 'nothing that ran'


def nccl_stub(options):
    return Path(options.program).resolve().parent / 'libplumbline_nccl_stub.so'


def hostile_mpi(options):
    return Path(options.program).resolve().parent / 'scripts/tests/libhostile_mpi.so'


def missing(options):
    """What some rounds would need, in words."""
    needs = (('mpirun', shutil.which('mpirun')), (nccl_stub(options).name, nccl_stub(options).exists()),
             (hostile_mpi(options).name, hostile_mpi(options).exists()))  # fmt: skip
    return [name for name, is_there in needs if not is_there]


class Round:
    """The default: plumbline's own runtime does everything right."""

    kind = 'runtime'
    is_alike = False  # whether its rounds need equal memory

    def __init__(self, options, number, cases):
        self.options, self.number, self.random = options, number, random.Random(f'{options.seed} {number}')
        self.folder = options.out / f'round-{options.seed}-{number}'
        shutil.rmtree(self.folder, ignore_errors=True)
        self.temporary, self.report, self.mark = self.folder / 'temporary', self.folder / 'report', uuid.uuid4().hex
        self.temporary.mkdir(parents=True)
        self.environment = {**os.environ, 'TMPDIR': str(self.temporary), 'SOAK_MARK': self.mark, 'PYTHONDONTWRITEBYTECODE': '1'}
        self.words = [*self.runner(), *self.options_of_run(cases)]

    def runner(self):
        return [str(self.options.program), 'run']

    def some(self, of, most):
        return self.random.sample(of, min(len(of), self.random.randint(1, most)))

    def options_of_run(self, cases):
        words = ['--case', ','.join(self.some(cases, self.options.runs)), '--schedule', ','.join(self.some(SCHEDULES, 4))]
        words += ['--ranks', self.random.choice(['2', '4', '1,2,4']), '--seed', str(self.random.randint(1, 9))]
        transport, modes = self.random.choice(['threads', 'threads', 'mpi', 'nccl']), self.random.choice(NCCL_MODES)
        if not shutil.which('mpirun'):
            transport = 'threads'
        if transport == 'nccl' and nccl_stub(self.options).exists():
            return words + ['--transport', 'nccl', '--nccl', f'stub:{modes}']
        words += ['--transport', 'mpi' if transport == 'nccl' else transport]
        if wire := self.random.choice(WIRES):
            words += ['--wire', wire]
        if (recompute := self.random.choice(['never', 'never', 'except-last', 'always'])) != 'never':
            words += ['--recompute', recompute]
        return words

    def run(self):
        """The number of runs. Raises Finding."""
        with open(self.folder / 'output', 'w', encoding='utf-8') as output:
            process = subprocess.Popen([*self.words, '--report', str(self.report)], stdout=output, stderr=output, env=self.environment,
                                       start_new_session=True)
            self.usage = Usage(process.pid)
            try:
                code = process.wait(self.options.longest)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise Finding(f'no end within {self.options.longest} s') from None
            finally:
                self.usage.close()
        if code == 2 and (self.folder / 'output').read_text(encoding='utf-8').startswith('plumbline: nothing to run: '):
            return 0  # none of the cases comes under the schedules on so many ranks
        verdicts = self.verdicts(code)
        ran = {status for _, _, status, _ in verdicts} - {'unsupported'}
        self.expect_code(code, 'some failures' if self.is_broken() else ending(ran))
        for case, schedule, status, sentence in verdicts:
            expected = self.expected(case, schedule)
            if status not in expected.split(' or ') and not (expected == 'pass' and status == 'unsupported'):
                raise Finding(f'{sentence} (fault: {self.fault_of(case, schedule)}, expected {expected})')
        if left := marked(self.mark):
            raise Finding(f'processes are left: {" ".join(left)}')
        if left := [name for name in os.listdir(self.temporary) if not name.startswith('ompi.')]:
            raise Finding(f'files are left in the temporary folder: {" ".join(left)}')
        if grown := self.usage.grown(len(verdicts)):
            raise Finding(grown)
        for words in self.checks():
            self.expect_check(words, ending(ran))
        return len(verdicts)

    def verdicts(self, code):
        """[(case, schedule, status, sentence)]"""
        try:
            found = json.loads((self.report / 'report.json').read_text(encoding='utf-8'))['verdicts']
        except (OSError, ValueError) as error:
            raise Finding(f'exit code {code} and no report: {error}') from None
        return [(v['case'], v['schedule'], v['status'], v['sentence']) for v in found]

    def expect_code(self, code, what):
        if code != ENDINGS[what]:
            raise Finding(f'exit code {code} for {what}')

    def is_broken(self):
        """Whether something fails between two cases: then no verdict tells it."""
        return False

    def fault_of(self, case, schedule):
        return 'none'

    def expected(self, case, schedule):
        """The status of the run."""
        return 'pass'

    def checks(self):
        """The commands that judge the report again."""
        return [[str(self.options.program), 'check', str(self.report)]]

    def expect_check(self, words, what):
        try:
            checked = subprocess.run(words, capture_output=True, text=True, env=self.environment, timeout=self.options.longest)
        except subprocess.TimeoutExpired:
            raise Finding(f'no end of check within {self.options.longest} s') from None
        if checked.returncode != ENDINGS[what]:
            said = (checked.stdout + checked.stderr).strip()[-300:]
            raise Finding(f'exit code {ENDINGS[what]} for {what}, but check says {checked.returncode}: {said}')


class Long(Round):
    """Many runs of alike cases in one process, whose memory is to be flat."""

    kind = 'long'

    def options_of_run(self, cases):
        alike = [case for case in cases if case.startswith('exact-mlp')] or cases
        runs = LONG_TIMES * self.options.runs
        chosen = self.random.sample(alike, min(len(alike), -(-runs // len(SCHEDULES))))
        ranks = '1,2,4' if len(chosen) * len(SCHEDULES) < runs else '2'
        return ['--case', ','.join(chosen), '--schedule', ','.join(SCHEDULES), '--ranks', ranks, '--transport', 'threads']


class Backend(Round):
    """hostile_backend.py, which does right in some runs and has a fault in others, under plumbline."""

    kind, is_alike = 'backend', True

    def options_of_run(self, cases):
        schedules = self.choose_faults()
        file, timeouts = self.folder / 'backend.toml', f'start = 120\ncase = {CASE_SECONDS}\n'
        argv = json.dumps(self.backend())
        file.write_text(f'schema = "plumbline-backend/1"\nargv = {argv}\n[timeouts]\n{timeouts}', encoding='utf-8')
        return ['--backend', str(file), '--case', ','.join(SIMPLE_CASES), '--schedule', ','.join(schedules), '--ranks', '2']

    def choose_faults(self):
        """Writes the table of faults. Returns the schedules."""
        self.table = {}
        schedules = self.some(HOSTILE_SCHEDULES, max(2, self.options.runs // 4))
        for case in SIMPLE_CASES:
            for schedule in schedules:
                if self.random.random() < 0.4:
                    self.table[f'{case} {schedule}'] = self.random.choice(list(FAULTS))
        (self.folder / 'table.json').write_text(json.dumps(self.table), encoding='utf-8')
        return schedules

    def backend(self):
        return [sys.executable, str(HOSTILE), str(self.folder / 'table.json')]

    def fault_of(self, case, schedule):
        return self.table.get(f'{case} {schedule}', 'none')

    def expected(self, case, schedule):
        return FAULTS.get(self.fault_of(case, schedule), 'pass')


class Package(Backend):
    """The same under plumbline-case."""

    kind = 'package'

    def runner(self):
        self.environment['PYTHONPATH'] = str(PYTHON)
        return self.tool('run')

    def tool(self, verb):
        return [sys.executable, '-m', 'plumbline_case', verb]

    def options_of_run(self, cases):
        self.schedules, self.corpus = ','.join(self.choose_faults()), self.folder / 'corpus'
        return ['--backend', shlex.join(self.backend()), '--corpus', str(self.corpus), '--timeout', str(CASE_SECONDS), '--verbose']

    def run(self):
        words = ['--case', ','.join(SIMPLE_CASES), '--schedule', self.schedules, '--ranks', '2', '--expected', '-o', str(self.corpus)]
        exported = subprocess.run([self.options.program, 'export', *words], capture_output=True, text=True)
        if exported.returncode:
            raise Finding(f'exit code {exported.returncode} of export: {exported.stderr.strip()[-300:]}')
        return super().run()

    def verdicts(self, code):
        text = (self.folder / 'output').read_text(encoding='utf-8')
        found = re.findall(r'(?m)^(([A-Z]+) (\S+) x (\S+) \(.*)$', text)
        if not found:
            raise Finding(f'exit code {code} and no verdict: {text.strip()[-300:]}')
        return [(case, schedule, status.lower(), sentence) for sentence, status, case, schedule in found]

    def checks(self):
        return [*super().checks(), [*self.tool('check'), str(self.report), '--corpus', str(self.corpus)]]


class RankFault(Round):
    """plumbline's own ranks under mpirun, one of which has a fault below MPI."""

    kind, is_alike = 'ranks', True

    def options_of_run(self, cases):
        self.fault = self.random.choice(list(RANK_FAULTS))
        self.environment['HOSTILE_MPI'] = f'{self.fault} {self.random.choice((0, 1))}'
        launcher = f'mpirun -n {{np}} env LD_PRELOAD={hostile_mpi(self.options)}'
        words = ['--case', ','.join(SIMPLE_CASES), '--schedule', self.random.choice(('gpipe', '1f1b')), '--ranks', '2']
        words += ['--transport', 'mpi', '--timeout', str(MESSAGE_SECONDS), '--launcher', launcher]
        wire = self.random.choice(WIRES)
        return words + (['--wire', wire] if wire else [])

    def fault_of(self, case, schedule):
        return self.environment['HOSTILE_MPI']

    def is_broken(self):
        return self.fault == 'killed-at-the-end'

    def expected(self, case, schedule):
        # Ranks start again after an error, and count from the first message; after wrong numbers they go on.
        is_second = case == SIMPLE_CASES[1]
        return 'pass' if is_second and RANK_FAULTS[self.fault] == 'fail' else RANK_FAULTS[self.fault]


def kind_of(seed, number):
    if number % LONG_EVERY == LONG_AT:
        return Long
    share = random.Random(f'{seed} kind {number}').random()
    return Backend if share < 0.25 else Package if share < 0.4 else RankFault if share < 0.6 else Round


def make_round(options, number, cases):
    kind = kind_of(options.seed, number)
    if kind is RankFault and not (hostile_mpi(options).exists() and shutil.which('mpirun')):
        kind = Round
    return kind(options, number, cases)
