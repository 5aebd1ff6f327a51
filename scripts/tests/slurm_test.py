#!/usr/bin/env python3
"""A Slurm of two hosts (namespaces of this machine, see hosts.py): what docs/hosts.md says of srun.

PLUMBLINE names the program, HOSTILE_MPI_FILE the library of faults below MPI. Skipped without Slurm and MUNGE.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import hosts  # noqa: E402

PROGRAM = os.environ['PLUMBLINE']
LIBRARY = os.environ.get('HOSTILE_MPI_FILE')
NETWORK = '10.78.0'
SRUN = 'srun --mpi=pmix --kill-on-bad-exit=1 -n {np}'
SECONDS = 240


class Slurm(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hosts.require(['slurmctld', 'slurmd', 'srun', 'munged', 'mpirun'],
                      'slurmctld, slurmd, slurm-client, slurm-wlm-basic-plugins, munge, libpmix2')
        hosts.require_open_mpi("srun's PMIx is Open MPI's")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.folder.chmod(0o755)
        local = cls.folder / 'local'  # each host's own
        for path in (local, cls.folder / 'state', cls.folder / 'munge'):
            path.mkdir()
        (cls.folder / 'munge/key').write_bytes(os.urandom(1024))
        (cls.folder / 'munge/key').chmod(0o400)
        cls.socket = cls.folder / 'munge/socket'
        options = {'key-file': 'key', 'socket': 'socket', 'pid-file': 'pid', 'log-file': 'log', 'seed-file': 'seed'}
        munged = subprocess.Popen(['munged', '--force', '--foreground',
                                   *(f'--{option}={cls.folder}/munge/{file}' for option, file in options.items())],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cls.addClassCleanup(munged.wait)
        cls.addClassCleanup(munged.terminate)
        cls.until(cls.socket.exists, 'munged')
        (cls.folder / 'slurm.conf').write_text(f"""ClusterName=test
SlurmctldHost=n1({NETWORK}.1)
SlurmUser=root
SlurmdUser=root
AuthInfo=socket={cls.socket}
StateSaveLocation={cls.folder}/state
SlurmdSpoolDir={local}/spool
TmpFS={local}
SlurmctldPidFile={cls.folder}/slurmctld.pid
SlurmdPidFile={local}/slurmd.pid
SlurmctldLogFile={cls.folder}/slurmctld.log
SlurmdLogFile={cls.folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
NodeName=n[1-2] NodeAddr={NETWORK}.[1-2] CPUs=4
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE
""")
        cls.hosts = hosts.two_hosts(cls, ('n1', 'n2'), NETWORK, cls.folder)
        for host in cls.hosts:
            host.sh(f'mount -t tmpfs none {local}; mount -t tmpfs none /dev/shm')
        cls.addClassCleanup(cls.shut_down)
        for host, daemon in ((cls.hosts[0], 'slurmctld'), (cls.hosts[0], 'slurmd'), (cls.hosts[1], 'slurmd')):
            host.sh(f'SLURM_CONF={cls.folder}/slurm.conf {daemon}')
        cls.until(lambda: cls.on_first('sinfo', '--noheader', '--format', '%D %T').stdout == '2 idle\n', "Slurm's hosts")

    @staticmethod
    def until(holds, what):
        deadline = time.monotonic() + 60
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f'no {what} within 60 s')
            time.sleep(0.1)

    @classmethod
    def shut_down(cls):
        cls.on_first('scancel', '--user', 'root')
        cls.on_first('scontrol', 'shutdown')
        left = lambda host: subprocess.run([*host.inside, 'test', '-e', f'{cls.folder}/local/slurmd.pid']).returncode == 0
        cls.until(lambda: not any(left(host) for host in cls.hosts) and not (cls.folder / 'slurmctld.pid').exists(),
                  "end of Slurm's daemons")

    @classmethod
    def on_first(cls, *words):
        """Runs a command on the first host, in the common folder."""
        environment = dict(os.environ, SLURM_CONF=f'{cls.folder}/slurm.conf', OMP_NUM_THREADS='1', TERM='dumb')
        return subprocess.run([*cls.hosts[0].inside, 'env', '-C', str(cls.folder), *words], text=True, timeout=SECONDS, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def allocated(self, *words):
        """In an allocation of two tasks on each host."""
        return self.on_first('salloc', '--quiet', '--nodes=2', '--ntasks=4', '--ntasks-per-node=2', *words)

    def test_doctor_tells_the_hosts(self):
        found = self.allocated(PROGRAM, 'doctor', '--ranks', '4', '--launcher', SRUN)
        self.assertEqual(found.returncode, 0, found.stdout)
        self.assertIn('ranks: 4 ranks on 2 hosts: n1 has 0-1; n2 has 2-3', found.stdout)

    def test_ranks_that_plumbline_starts(self):
        ran = self.allocated(PROGRAM, 'run', '--launcher', SRUN, '--ranks', '2,4', '--case', 'exact-tied', '--schedule', '1f1b,zb-h1',
                             '--report', 'started')
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn('+ pass 4', ran.stdout)

    def test_ranks_that_srun_started_name_it(self):
        """A failure of theirs is repeated by srun."""
        ran = self.allocated(*SRUN.format(np=4).split(), PROGRAM, 'run', '--case', 'exact-tied', '--schedule', '1f1b', '--report', 'direct')
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn('+ pass 1', ran.stdout)
        ran = self.allocated(*SRUN.format(np=4).split(), PROGRAM, 'run', '--case', 'exact-tied', '--schedule', '1f1b',
                             '--mutant', 'activation-scaled', '--report', 'wrong')
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertRegex(ran.stdout, r'repeat: srun --mpi=pmix -N 2 -n 4 ')

    def with_fault(self, fault, seconds):
        """A run of one case in which rank 3 has this fault below MPI."""
        faulty = SRUN + f' env HOSTILE_MPI="{fault} 3" LD_PRELOAD={LIBRARY}'
        return self.allocated(PROGRAM, 'run', '--launcher', faulty, '--ranks', '4', '--case', 'exact-mlp-sum', '--schedule', 'gpipe',
                              '--timeout', str(seconds), '--report', fault)

    @unittest.skipUnless(LIBRARY, 'HOSTILE_MPI_FILE names no library of faults')
    def test_a_killed_rank_is_named(self):
        ran = self.with_fault('killed-receiving', 20)
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertRegex(ran.stdout, r'(?m)^ERROR .*srun: error: n2: task 3: Killed')

    @unittest.skipUnless(LIBRARY, 'HOSTILE_MPI_FILE names no library of faults')
    def test_a_stopped_rank_is_named(self):
        ran = self.with_fault('stopped', 4)
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertRegex(ran.stdout, r'ranks 0, 1, 2 wait for rank 3, which left no events \(see ')

    def test_a_cancelled_job_leaves_nothing_and_is_resumed(self):
        words = f"run --case 'exact-mlp*' --ranks 4 --launcher '{SRUN}' --report cancelled"
        script = self.folder / 'job'
        script.write_text(f'#!/bin/sh\nexec {PROGRAM} {words}\n')
        job = self.on_first('sbatch', '--parsable', '--nodes=2', '--ntasks=4', '--ntasks-per-node=2', str(script)).stdout.strip()
        verdicts = self.folder / 'cancelled/results.jsonl'
        judged = lambda: len(verdicts.read_text().splitlines()) if verdicts.exists() else 0
        self.until(lambda: judged() >= 5, 'five verdicts')
        self.on_first('scancel', job)
        self.until(lambda: not self.on_first('squeue', '--noheader').stdout, 'end of the job')
        self.assertEqual(self.on_first('sh', '-c', 'ls -A /dev/shm; pgrep -f "report [c]ancelled"; true').stdout, '')
        before = judged()
        again = self.allocated('sh', '-c', f'exec {PROGRAM} {words} --resume')
        self.assertEqual(again.returncode, 0, again.stdout)
        self.assertIn(f'resumed: {before} of ', again.stdout)


if __name__ == '__main__':
    sys.exit(hosts.finish())
