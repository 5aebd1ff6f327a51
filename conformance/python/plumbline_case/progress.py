"""What `run` and `check` print while they judge, as plumbline does.

On a terminal one line is redrawn, "12/46: 11 passed, 1 failed | exact-tied x 1f1b", with the failures above it. Elsewhere (a
file, a CI log) the failures are printed, and a line after every tenth of the runs. Runs without a verdict are counted by
their reason at the end. Verbose: a line for each run.
"""

import os
import shutil
import sys
from collections import Counter

from .number_text import one_line, shown

FEWEST_RUNS_TO_A_LINE = 10  # plain lines about the progress are at least so many runs apart
ERASE = "\r\x1b[K"
RED, PLAIN = "\x1b[31m", "\x1b[0m"
UNJUDGED = ("UNSUPPORTED", "SKIPPED", "NOT JUDGED", "NOT RUN")


def is_live_terminal(stream):
    """Whether it is a terminal that understands cursor movement."""
    return stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


class Progress:
    """with Progress(...) as progress: what happens while the runs are judged; then progress.summary()."""

    def __init__(self, verbose, repeat=None, report=None):
        """`repeat`: a function from a verdict to the command that repeats its run. `report`: the folder that contains
        Verdict.log, if it is kept."""
        self._verbose, self._repeat, self._report = verbose, repeat, report
        self._live = is_live_terminal(sys.stdout)
        self._colour = self._live and not os.environ.get("NO_COLOR")  # https://no-color.org
        self._total, self._current, self._drawn = 0, "", False
        self._verdicts = {}  # a later verdict on a run replaces the first
        #: whether something failed outside of any run
        self.is_broken = False
        self._left_out = Counter()  # schedules of runs that the backend does not take

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._erase()

    @property
    def verdicts(self):
        return list(self._verdicts.values())

    def begin(self, total, left_out=()):
        """`left_out`: the schedule of each run that the backend does not take."""
        self._total, self._left_out = total, Counter(left_out)
        self._draw()

    def working_on(self, case, schedule):
        self._current = f"{case} x {schedule}"
        self._draw()

    def finished(self, verdict):
        self._verdicts[verdict[:4]] = verdict
        if verdict.is_failure():
            text = self._failure(verdict)
            self._note(f"{RED}{text}{PLAIN}" if self._colour else text)
        elif self._verbose:
            self._note(verdict.sentence())
        else:
            self._draw()
        done, tenth = len(self._verdicts), max(self._total // 10, FEWEST_RUNS_TO_A_LINE)
        if not self._live and not self._verbose and done % tenth == 0 and done < self._total:
            self._note(self._counts())

    def broken(self, why):
        """A failure outside of any run."""
        self.is_broken = True
        self._note(f"BROKEN {shown(why)}")

    def summary(self):
        if not self._verbose:
            unjudged = Counter((v.status, v.clause) for v in self.verdicts if v.status in UNJUDGED)
            for (status, reason), count in sorted(unjudged.items(), key=lambda item: (item[0][0], -item[1], item[0][1])):
                print(f"{status} {count} x: {shown(reason)}")
        if self._left_out:
            names = ", ".join(sorted(self._left_out))
            print(f"left out: {sum(self._left_out.values())} runs under schedules that describe does not name: {names}")
        counts = Counter(verdict.status.lower() for verdict in self.verdicts)
        print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())))

    def _failure(self, verdict):
        has_log = verdict.log and self._report
        text = verdict.sentence() + (f" (see {one_line(os.path.join(self._report, verdict.log))})" if has_log else "")
        return text + (f"\n  repeat: {self._repeat(verdict)}" if self._repeat else "")

    def _counts(self):
        passed = sum(verdict.status == "PASS" for verdict in self.verdicts)
        failed = sum(verdict.is_failure() for verdict in self.verdicts)
        other = len(self.verdicts) - passed - failed
        named = "".join(f", {count} {what}" for count, what in ((failed, "failed"), (other, "other")) if count)
        return f"{len(self.verdicts)}/{self._total}: {passed} passed{named}"

    def _note(self, line):
        """A line that stays, above the live one."""
        self._erase()
        print(line, flush=True)
        self._draw()

    def _draw(self):
        if not self._live:
            return
        line = self._counts() + (f" | {one_line(self._current)}" if self._current else "")
        room = max(shutil.get_terminal_size().columns - 1, 1)  # a wrapped line cannot be redrawn
        print(f"{ERASE}{line[:room]}", end="", flush=True)
        self._drawn = True

    def _erase(self):
        if self._drawn:
            print(ERASE, end="", flush=True)
        self._drawn = False
