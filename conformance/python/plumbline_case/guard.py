"""The process between plumbline-case and a program that it starts, which leaves nothing of it behind.

python3 guard.py DESCRIPTOR FOLDER WORD...: starts the words as a program in a session of its own, and ends as it ends. The
guard is the parent of every process that the program leaves without one, in whatever session and with whatever environment
(PR_SET_CHILD_SUBREAPER), and kills them all when the program has ended, or when the other end of the pipe DESCRIPTOR closes:
because plumbline-case says so, or because it was killed. In that case it also removes FOLDER, which plumbline-case would have
removed; FOLDER "" is none. If the guard is killed, the kernel kills the program.

Elsewhere than on Linux only the program's own process group is killed.
"""

import contextlib
import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LONGEST_END = 10.0  # seconds in which the kernel ends killed processes; those in an uninterruptible sleep are then left
CANNOT_START = 127
IS_LINUX = sys.platform == "linux"


def guarded(words, control, folder=""):
    """The words that start `words` under a guard. `control`: the descriptor that it inherits; `folder`: as FOLDER above."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(control), folder, *words]


def prctl(option, value):
    if IS_LINUX:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def children():
    try:
        with open("/proc/thread-self/children", encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]
    except OSError:
        return []


def kill_all(program):
    """Kills the program's group and all that it left, and returns when they are gone."""
    deadline = time.monotonic() + LONGEST_END
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            os.killpg(program.pid, signal.SIGKILL)
        for pid in children():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        program.poll()  # before others are reaped: it keeps the exit code
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def main(control, folder, words):
    os.set_inheritable(control, False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    guard, starter = os.getpid(), os.getppid()

    def before_exec():
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guard:  # it was killed before
            os._exit(CANNOT_START)

    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        program = subprocess.Popen(words, start_new_session=True, preexec_fn=before_exec)
    except OSError as error:
        sys.exit(f"{words[0]}: {error.strerror}")
    while program.poll() is None:
        ready = select.select([control, woken], [], [])[0]
        if control in ready:
            break
        os.read(woken, 1024)
    kill_all(program)
    if folder and os.getppid() != starter:
        remove(folder)
    end_as(program.returncode)


def remove(folder):
    import shutil  # which a usual end does not need, and which takes longer to import than all others

    shutil.rmtree(folder, ignore_errors=True)


def end_as(code):
    if code is not None and code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the program has left its own
        with contextlib.suppress(OSError, ValueError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code or 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
