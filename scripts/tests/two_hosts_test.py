#!/usr/bin/env python3
"""Two hosts that share no folder and talk over TCP: namespaces of this machine with their own network, host name and mounts.

PLUMBLINE names the program, HOSTILE_MPI_FILE the library of faults below MPI. Skipped unless this user may make such namespaces and mpirun is Open MPI's.
"""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
import hosts  # noqa: E402

PROGRAM = os.environ['PLUMBLINE']
LIBRARY = os.environ.get('HOSTILE_MPI_FILE')
SOURCE = Path(__file__).resolve().parents[2]
NAMES = ('near', 'far')
NETWORK = '10.77.0'
SECONDS = 240


def without_warnings(output):
    """Its lines, without Open MPI's warning that it came too late to give a remote shell a process group."""
    return [line for line in output.splitlines() if 'plm:rsh: Warning: setpgid(' not in line]


class TwoHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        hosts.require(['mpirun'], 'openmpi-bin')
        hosts.require_open_mpi('the test starts remote ranks as Open MPI does')
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.outside = Path(cls.folder.name)
        cls.work = cls.outside / 'work'  # each host mounts a file system of its own here
        cls.work.mkdir()
        cls.hosts = hosts.two_hosts(cls, NAMES, NETWORK, cls.outside)
        for host in cls.hosts:
            host.sh(f'mount -t tmpfs none {cls.work}')
        agent = cls.outside / 'agent'  # in the place of ssh: HOST COMMAND...
        agent.write_text(f'#!/bin/sh\nshift\nexec {" ".join(cls.hosts[1].inside)} -- sh -c "$*"\n')
        agent.chmod(0o755)
        cls.launcher = (f'mpirun --mca plm_rsh_agent {agent} --mca btl tcp,self --mca btl_tcp_if_include {NETWORK}.0/24 '
                        f'--mca oob_tcp_if_include {NETWORK}.0/24 --host near:2,far:2 --map-by node -n {{np}}')

    def near(self, *words):
        """Runs a command on the near host, in its own folder. The far host cannot see that."""
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1', OMP_NUM_THREADS='1', TERM='dumb')
        return subprocess.run([*self.hosts[0].inside, 'sh', '-c', 'cd "$0" && exec "$@"', self.work, *words], text=True, timeout=SECONDS, env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def plumbline(self, *words):
        return self.near(PROGRAM, *words)

    def under_mpirun(self, ranks, *words):
        return self.near(*self.launcher.format(np=ranks).split(), PROGRAM, *words)

    def test_the_hosts_share_no_folder(self):
        self.hosts[0].sh(f'touch {self.work}/mark')
        with self.assertRaises(subprocess.CalledProcessError):
            self.hosts[1].sh(f'ls {self.work}/mark')
        both = self.near(*self.launcher.format(np=2).split(), 'hostname')
        self.assertEqual(sorted(without_warnings(both.stdout)), ['far', 'near'], both.stdout)

    def test_ranks_that_mpirun_started(self):
        ran = self.under_mpirun(4, 'run', '--case', 'exact-mlp-sum,exact-tied', '--schedule', '1f1b,zb-h1', '--report', 'inside')
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn('+ pass 4', ran.stdout)
        self.hosts[0].sh(f'cd {self.work}/inside/results/mpi-4/1f1b/exact-tied && test -s rank0.safetensors && '
                         'test -s rank3.safetensors')
        self.hosts[1].sh(f'test -z "$(ls {self.work})"')

    def test_ranks_that_plumbline_starts(self):
        ran = self.plumbline('run', '--launcher', self.launcher, '--ranks', '2', '--case', 'exact-mlp-sum', '--schedule', '1f1b',
                             '--throughput', '--report', 'outside')
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn('+ pass 1', ran.stdout)
        self.hosts[1].sh(f'test -z "$(ls {self.work})"')

    def test_the_users_files_are_on_one_host(self):
        self.hosts[0].sh(f"""mkdir {self.work}/mine && cd {self.work}
            printf '0F0,0F1,0B0,0B1\\n1F0,1B0,1F1,1B1\\n' > mine.csv
            printf 'schema = "plumbline-cases/1"\\n[[case]]\\nid = "my-mlp"\\ntitle = "t"\\nwhy = "w"\\ntruth = "exact"\\nmodel = "exact-mlp"\\n' > mine/my.toml
            printf 'microbatches = 2\\nloss = {{kind = "mse", reduction = "sum"}}\\n' >> mine/my.toml
            cp {SOURCE}/runtime/capture/pt2/testdata/views/model.pt2 .""")
        case = ['--corpus', 'mine', '--case', 'my-mlp', '--schedule', 'mine.csv', '--ranks', '2']
        ran = self.plumbline('run', '--launcher', self.launcher, *case)
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn('+ pass 1', ran.stdout)
        ran = self.under_mpirun(2, 'run', *case, '--report', 'inside')
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn('+ pass 1', ran.stdout)
        ran = self.under_mpirun(2, 'run', '--case', 'exact-mlp-sum', '--microbatches', '2', '--schedule', 'mine.csv')
        self.assertEqual(ran.returncode, 0, ran.stdout)
        ran = self.plumbline('run', '--program', 'model.pt2', '--stages', '2', '--launcher', self.launcher, '--transport', 'mpi')
        self.assertEqual(ran.returncode, 0, ran.stdout)
        self.assertIn('losses', ran.stdout)

    def test_a_failure_is_repeated_by_the_same_launcher(self):
        fault = ['--case', 'exact-mlp-sum', '--schedule', '1f1b', '--mutant', 'drop-last-microbatch']
        ran = self.plumbline('run', '--launcher', self.launcher, '--ranks', '2', *fault)
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.repeat(ran.stdout, "--launcher '" + self.launcher)
        ran = self.under_mpirun(2, 'run', *fault)
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.repeat(ran.stdout, f'repeat: {self.launcher.format(np=2)} {PROGRAM} run')

    def repeat(self, output, expected):
        """The line that a failure prints is a command that fails alike."""
        line = next(line for line in output.splitlines() if 'repeat: ' in line)
        self.assertIn(expected, line)
        again = self.near('sh', '-c', line.split('repeat: ', 1)[1])
        self.assertEqual(again.returncode, 1, again.stdout)
        self.assertIn('FAIL exact-mlp-sum x 1f1b (2 ranks, mpi)', again.stdout)

    @unittest.skipUnless(LIBRARY, 'HOSTILE_MPI_FILE names no library of faults')
    def test_a_rank_that_stops_on_another_host_is_named(self):
        """Ranks 1 and 3 are on the far host: rank 3 stops, and rank 1 tells over MPI that it waits for rank 2."""
        faulty = self.launcher + f' env HOSTILE_MPI="stopped 3" LD_PRELOAD={LIBRARY}'
        ran = self.plumbline('run', '--launcher', faulty, '--ranks', '4', '--case', 'exact-mlp-sum', '--schedule', 'gpipe', '--timeout', '4',
                             '--report', 'stopped')
        self.assertEqual(ran.returncode, 1, ran.stdout)
        self.assertRegex(ran.stdout, r'ranks 0, 1, 2 wait for rank 3, which left no events \(see ')
        page = self.near('cat', 'stopped/results/mpi-4/logs/gpipe/exact-mlp-sum/flight.txt').stdout
        self.assertRegex(page, r'rank 1 waits for rank 2 since \d')
        self.assertRegex(page, r'\n *-?[0-9.]+ s  a send to rank 2 is posted')

    def test_doctor_tells_the_hosts(self):
        found = self.plumbline('doctor', '--ranks', '4', '--launcher', self.launcher)
        self.assertEqual(found.returncode, 0, found.stdout)
        self.assertIn('ranks: 4 ranks on 2 hosts: near has 0, 2; far has 1, 3', found.stdout)
        self.assertIn("ranks 1, 3 do not see rank 0's working folder", found.stdout)
        self.assertRegex(found.stdout, r'links: slowest: rank \d \((near|far)\) to rank \d')
        self.assertEqual(len(without_warnings(found.stdout)), 6, found.stdout)


if __name__ == '__main__':
    sys.exit(hosts.finish())
