"""Hosts on this machine: namespaces with their own network, host name and mounts. Only root may make them."""

import os
import shutil
import signal
import subprocess
import unittest
from pathlib import Path


class Host:
    """A process that holds the namespaces of one host open."""

    def __init__(self, name, address):
        self.name, self.address = name, address
        self.holder = subprocess.Popen(['unshare', '--mount', '--uts', '--net', '--kill-child', 'sh', '-c', 'echo; exec sleep 600'],
                                       stdout=subprocess.PIPE, start_new_session=True)
        if not self.holder.stdout.readline():
            raise unittest.SkipTest('this user may not make namespaces (unshare --mount --uts --net)')
        self.inside = ['nsenter', '--target', str(self.pid()), '--mount', '--uts', '--net']

    def pid(self):
        """Of sleep: with --kill-child, unshare waits for it."""
        children = Path(f'/proc/{self.holder.pid}/task/{self.holder.pid}/children').read_text().split()
        return int(children[0]) if children else self.holder.pid

    def sh(self, script):
        subprocess.run([*self.inside, 'sh', '-ec', script], check=True, text=True, capture_output=True)

    def close(self):
        try:
            os.killpg(self.holder.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.holder.wait()
        self.holder.stdout.close()


def require(programs, packages):
    """Skips the test unless this user can make hosts and has the programs."""
    for program in ('unshare', 'nsenter', 'ip', *programs):
        if not shutil.which(program):
            raise unittest.SkipTest(f'no {program} here (Debian: util-linux, iproute2, {packages})')
    if os.getuid() != 0:
        raise unittest.SkipTest('only root may make network namespaces')


def require_open_mpi(why):
    if 'Open MPI' not in subprocess.run(['mpirun', '--version'], capture_output=True, text=True).stdout:
        raise unittest.SkipTest(why)


def two_hosts(test, names, network, folder):
    """Two hosts with these names, connected, until the end of the class `test`. `network` is the begin of their addresses,
    such as "10.77.0"; `folder` is theirs in common."""
    hosts = []
    for number, name in enumerate(names):
        hosts.append(Host(name, f'{network}.{number + 1}'))
        test.addClassCleanup(hosts[-1].close)
    (folder / 'hosts').write_text('127.0.0.1 localhost\n' + ''.join(f'{host.address} {host.name}\n' for host in hosts))
    pair = [f'plumb{host.name}' for host in hosts]
    subprocess.run(['ip', 'link', 'add', pair[0], 'netns', str(hosts[0].pid()), 'type', 'veth', 'peer', 'name', pair[1],
                    'netns', str(hosts[1].pid())], check=True)
    for host, device in zip(hosts, pair):
        host.sh(f'ip link set lo up; ip address add {host.address}/24 dev {device}; ip link set {device} up; '
                f'hostname {host.name}; mount --bind {folder}/hosts /etc/hosts')
    return hosts


def finish():
    """The end of a test program: exit 77 where every test was skipped."""
    result = unittest.main(exit=False).result
    return 77 if result.skipped and not result.testsRun else not result.wasSuccessful()
