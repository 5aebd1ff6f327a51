"""Turns cases into tests: pytest --plumbline-backend my_adapter.py:MyBackend. Does nothing without that option."""

import os
import tempfile

import pytest


def pytest_addoption(parser):
    group = parser.getgroup("plumbline", "conformance cases for pipeline backends")
    group.addoption(
        "--plumbline-backend",
        metavar="SPEC",
        help="FILE.py:CLASS or MODULE:CLASS of a plumbline_case.Backend; each case becomes a test",
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


def pytest_collection_modifyitems(session, config, items):
    spec = config.getoption("--plumbline-backend")
    if spec is None:
        return
    from .corpus import entries, select
    from .loading import load_backend
    from .schema import FormatError

    try:
        backend = load_backend(spec)
        describe = backend.describe()
        chosen = select(entries(config.getoption("--plumbline-corpus")), config.getoption("--plumbline-cases"))
    except FormatError as error:
        raise pytest.UsageError(str(error)) from None
    job = {"format": "plumbline-job/1", "ranks": 1, "seed": 1, "timeout_seconds": backend.timeout, "cases": []}
    backend.start(job)
    parent = Cases.from_parent(session, name="plumbline", nodeid="plumbline")
    takes, of_backend = describe["schedules"], {"backend": backend, "delivers": describe["delivers"]}
    chosen = [entry for entry in chosen if takes == "any" or entry.schedule in takes]
    items += [CaseTest.from_parent(parent, name=entry.name, entry=entry, **of_backend) for entry in chosen]


class Cases(pytest.Collector):
    def collect(self):
        return []


class Wrong(Exception):
    """A verdict that is a failure; its text is the sentence."""


class CaseTest(pytest.Item):
    """One case, in this process, which acts as all ranks."""

    def __init__(self, entry, backend, delivers, **more):
        super().__init__(**more)
        self._entry, self._backend, self._delivers = entry, backend, delivers

    def runtest(self):
        from .case import load
        from .judge import Verdict, judge, rank_of

        entry = self._entry
        case = load(entry.folder)
        if case.truth != "exact" or not case.has_expected():
            pytest.skip(f"{case.truth} truth needs the oracle: plumbline run")
        if reason := self._backend.declines(case):
            pytest.skip(reason)
        with tempfile.TemporaryDirectory() as folder:
            made = self._backend.by_rank(case, self._backend.run(case, self._backend.prepare(case)))
            files = {os.path.join(folder, f"rank{rank}.safetensors"): results for rank, results in made.items()}
            for file, results in files.items():
                results.write(file)
            judged = judge(case, list(files), self._delivers, rank_of)
            verdict = Verdict(entry.case, entry.schedule, entry.ranks, "own", *judged)
        if verdict.is_failure():
            raise Wrong(verdict.sentence())

    def repr_failure(self, excinfo, style=None):
        return str(excinfo.value) if excinfo.errisinstance(Wrong) else super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, None, self.name
