"""Ranks as forked processes: torch is imported once, and a failed case only ends the ranks that ran it."""

import os
import select
import signal
import sys
import tempfile
import time
import traceback

GRACE = 2  # seconds in which the other ranks may notice a failure


class Progress:
    """The events for plumbline about the cases from number `first` on."""

    def __init__(self, first, tell):
        self._first, self._tell, self._reported = first, tell, 0

    def reach(self, number, what):
        """Reports that case `number` "begins" or is "done", and first all pending earlier events."""
        while self._reported <= 2 * (number - self._first) + (what == "done"):
            self._tell(self.current(), ("begins", "done")[self._reported % 2])
            self._reported += 1

    def current(self):
        """The running case, or the next one."""
        return self._first + self._reported // 2

    def failed(self, number, why):
        self.reach(number, "begins")
        self._tell(number, "failed", why)


class Start:
    """The ranks that execute cases from number `first` on; each calls run(rank, first, store, tell_parent)."""

    def __init__(self, ranks, run, first, tell):
        self._progress = Progress(first, tell)
        self._first_failure = None  # (number of the case, why)
        self._text, self._ended = "", False
        with tempfile.TemporaryDirectory() as folder:
            self._read, write = os.pipe()
            self._children = {}
            for rank in range(ranks):
                child = os.fork()
                if child == 0:
                    _be_rank(lambda tell_parent: run(rank, first, f"file://{folder}/store", tell_parent), write)
                self._children[child] = rank
            os.close(write)
            self._wait()
            os.close(self._read)

    def left(self, cases):
        """(number of the next case, or `cases` if all were executed; why a rank failed after the last one, or "")"""
        if self._first_failure is None:
            return cases, ""
        number, why = self._first_failure
        number = max(number, self._progress.current())  # rank 0 may have been done with the case
        if number == cases:
            return cases, f"{why}, after the last case"
        self._progress.failed(number, why)
        return number + 1, ""

    def _wait(self):
        deadline = None
        while self._children:
            self._listen(0.02)
            child, status = os.waitpid(-1, os.WNOHANG)
            if child:
                rank = self._children.pop(child)
                self._listen(0)
                if status and (self._first_failure is None or os.WIFSIGNALED(status) and not self._ended):
                    # Died silently; the other ranks may have noticed before.
                    number = self._first_failure[0] if self._first_failure else self._progress.current()
                    self._first_failure = number, f"rank {rank}: {_ending(status)}"
            if self._first_failure and deadline is None:
                deadline = time.monotonic() + GRACE
            if deadline and time.monotonic() > deadline:
                self._ended = True
                for other in self._children:
                    os.kill(other, signal.SIGKILL)

    def _listen(self, seconds):
        while select.select([self._read], [], [], seconds)[0] and (read := os.read(self._read, 65536)):
            *lines, self._text = (self._text + read.decode()).split("\n")
            for line in lines:
                number, what, why = line.split(" ", 2)
                if what != "failed":
                    self._progress.reach(int(number), what)
                elif self._first_failure is None:
                    self._first_failure = int(number), why
            seconds = 0
        # A pipe at its end is always readable, until the processes have ended too.
        time.sleep(min(seconds, 0.005))


def _be_rank(run, write):
    has_failed = False

    def tell(number, what, why=""):
        nonlocal has_failed
        has_failed = what == "failed"
        os.write(write, f"{number} {what} {why[:1000]}\n".encode())  # short enough for an atomic write

    status = 1
    try:
        run(tell)
        status = 0
    except Exception:
        if not has_failed:
            traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def _ending(status):
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"killed by signal {number} ({signal.strsignal(number)})"
    return f"exited with code {os.waitstatus_to_exitcode(status)}"


def execute_cases(cases, ranks, run, tell):
    """Executes all cases; after a failure, new ranks continue with the next one. tell(number, what, why) reports. What the
    ranks need should be imported before. Returns why a rank failed after the last case; "" if none did."""
    left, why = 0, ""
    while left < cases:
        left, why = Start(ranks, run, left, tell).left(cases)
    return why
