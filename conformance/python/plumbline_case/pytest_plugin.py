"""Turns cases into tests: pytest --plumbline-backend my_adapter.py:MyBackend. Does nothing without that option.

The backend runs in processes of its own, as under `plumbline-case run`: a crash or a hang fails one test.
"""

import argparse
import os
import tempfile

import pytest

SUITE = pytest.StashKey()


def pytest_addoption(parser):
    from .cli import seconds
    from .supervise import SECONDS

    group = parser.getgroup("plumbline", "conformance cases for pipeline backends")
    group.addoption(
        "--plumbline-backend",
        metavar="SPEC",
        help="the backend, as `plumbline-case run --backend` takes it: FILE.py:CLASS, say; each case becomes a test",
    )
    group.addoption(
        "--plumbline-cases",
        metavar="GLOB",
        default="*",
        help="only cases whose id matches one of these, separated by commas",
    )
    group.addoption(
        "--plumbline-corpus",
        metavar="DIR",
        help="the output folder of `plumbline export --expected` (default: the cases in plumbline-case)",
    )
    group.addoption(
        "--plumbline-timeout",
        metavar="S",
        type=seconds,
        default=SECONDS,
        help=f"seconds for a case (default: {SECONDS:g})",
    )


class Suite:
    """The runs of one session, which begin when the first test asks for its verdict."""

    def __init__(self, config):
        from .loading import command
        from .run import LOG, Run
        from .supervise import Supervisor

        given = lambda name: config.getoption(f"--plumbline-{name}")
        spec, corpus, seconds = given("backend"), given("corpus"), given("timeout")
        self._options = argparse.Namespace(
            backend=spec, case=given("cases"), schedule="*", ranks=None, launcher=None, corpus=corpus, timeout=seconds, report=None
        )
        self._folder = tempfile.TemporaryDirectory()
        log = os.path.join(self._folder.name, LOG)
        supervisor = Supervisor(command(spec), log, seconds=seconds, option="--plumbline-timeout", temporary=self._folder.name)
        self._run = Run(self._options, supervisor, self._folder.name)
        self.entries = sorted(self._run.entries, key=lambda entry: entry.ranks)  # one job after the other
        self.is_judged, self._jobs, self._verdicts, self._broken = False, {}, {}, {}

    def select(self, entries):
        from .run import by_ranks

        self._jobs = {ranks: self._run.judged(ranks, of_job) for ranks, of_job in by_ranks(entries)}
        self._asked = [(entry.case, entry.schedule, entry.ranks) for entry in entries]

    def verdict(self, entry):
        """Raises BackendError if no run on these ranks can be judged."""
        from .supervise import BackendError

        wanted = entry.case, entry.schedule, entry.ranks
        while wanted not in self._verdicts:
            if entry.ranks in self._broken:
                raise self._broken[entry.ranks]
            try:
                verdict = next(self._jobs[entry.ranks])
                self._verdicts[verdict[:3]] = verdict
            except (BackendError, StopIteration) as error:
                self._broken[entry.ranks] = BackendError(str(error) or "the backend ended before it")
        return self._verdicts[wanted]

    def told_last(self, entry):
        """What the last test on these ranks has to tell: verdicts that replace earlier ones, since result files have changed, and
        what failed outside of the cases."""
        if any(asked not in self._verdicts for asked in self._asked if asked[2] == entry.ranks):
            return []
        replaced = [verdict.sentence() for verdict in self._jobs[entry.ranks]]
        broken, self._run.broken = self._run.broken, []
        return replaced + [f"BROKEN {why}" for why in broken]

    def again(self, entry):
        from .again import again

        return again(self._options, entry)

    def close(self):
        for job in self._jobs.values():
            job.close()
        self._folder.cleanup()


def pytest_collection_modifyitems(session, config, items):
    if config.getoption("--plumbline-backend") is None:
        return
    from .schema import FormatError
    from .supervise import BackendError

    try:
        suite = config.stash[SUITE] = Suite(config)
    except (BackendError, FormatError) as error:
        raise pytest.UsageError(str(error)) from None
    parent = Cases.from_parent(session, name="plumbline", nodeid="plumbline")
    items += [CaseTest.from_parent(parent, name=entry.name, entry=entry, suite=suite) for entry in suite.entries]


def pytest_collection_finish(session):
    if suite := session.config.stash.get(SUITE, None):
        suite.select([item.entry for item in session.items if isinstance(item, CaseTest)])


def proves_nothing(config, exitstatus):
    """Whether all that ended well is that no case was judged."""
    suite = config.stash.get(SUITE, None)
    return suite and not suite.is_judged and exitstatus == 0 and not config.getoption("collectonly")


def pytest_sessionfinish(session, exitstatus):
    if proves_nothing(session.config, exitstatus):
        session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED  # as if there were none


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    if proves_nothing(config, exitstatus):
        terminalreporter.write_line("plumbline: no case was judged, so the backend has not passed (-rs shows why)")


def pytest_unconfigure(config):
    if suite := config.stash.get(SUITE, None):
        suite.close()


class Cases(pytest.Collector):
    def collect(self):
        return []


class Wrong(Exception):
    """A verdict that is a failure; its text is the sentence."""


class CaseTest(pytest.Item):
    """One case, which one process runs as all of its ranks."""

    def __init__(self, entry, suite, **more):
        super().__init__(**more)
        self.entry, self._suite = entry, suite

    def runtest(self):
        from .number_text import shown
        from .supervise import BackendError

        try:
            verdict, told_last = self._suite.verdict(self.entry), self._suite.told_last(self.entry)
        except BackendError as error:
            raise Wrong(str(error)) from None
        again = f"{verdict.sentence()}\n  repeat: {self._suite.again(self.entry)}"
        wrong = [again] * (verdict.is_failure() or verdict.status == "NOT RUN") + told_last
        if wrong:
            self._suite.is_judged = True
            raise Wrong("\n".join(wrong))
        if verdict.status in ("UNSUPPORTED", "SKIPPED", "NOT JUDGED"):
            pytest.skip(shown(verdict.clause))
        self._suite.is_judged = True

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if excinfo.errisinstance(Wrong) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name
