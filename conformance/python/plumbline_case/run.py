"""plumbline-case run: the exact cases of a corpus on a backend, judged as they end."""

import contextlib
import os

from .case import Case
from .corpus import entries, select
from .expectation import Expectation
from .judge import Verdict, judge, rank_of
from .loading import check_launcher, command, find_program, is_class
from .number_text import shown
from .regular import size_of
from .report_folder import RUN_SCHEMA, append_recorded, output_folder, rank_files, result_prefix, write_report
from .schema import FormatError
from .seal import Seal
from .stopping import temporary_folder
from .supervise import Supervisor, write_json

TRANSPORT = "own"  # the backend's
LOG = "backend.log"  # in the report folder


def run(options, progress):
    """Runs the cases that the options select, and tells progress.Progress what happens."""
    with contextlib.ExitStack() as stack:
        temporary = "" if options.report else stack.enter_context(temporary_folder())
        report = options.report or temporary
        if os.path.exists(os.path.join(report, "results")):
            raise FormatError(f"--report {report}: holds results already; give another folder")
        words = command(options.backend)
        if not is_class(options.backend):
            find_program(words[0])
        if options.launcher:
            check_launcher(options.launcher, options.ranks)
        os.makedirs(report, exist_ok=True)
        log = os.path.join(report, LOG)
        supervisor = Supervisor(words, log, options.ranks, options.launcher, options.timeout, temporary=temporary)
        Run(options, supervisor, report, progress).judge_all()


def job_of(entries, ranks, out, seconds):
    """The job of these cases on `ranks` ranks, whose paths are relative to the folder `out`."""
    cases = [
        {
            "id": entry.case,
            "schedule": entry.schedule,
            "folder": os.path.relpath(entry.folder, out),
            "results": result_prefix(entry.case, entry.schedule),
        }
        for entry in entries
    ]
    seed = Case(entries[0].folder).json["seed"]
    # One wait ends before the case does, so that a backend can name the message that it waits for.
    return {"format": "plumbline-job/1", "ranks": ranks, "seed": seed, "timeout_seconds": seconds / 2, "cases": cases}


def by_ranks(entries):
    """[(ranks, the entries on so many ranks)], ascending."""
    groups = {}
    for entry in entries:
        groups.setdefault(entry.ranks, []).append(entry)
    return sorted(groups.items())


class Run:
    """The runs that the options select: their describe at once, the others as judge_all() or judged() ask for them."""

    def __init__(self, options, supervisor, report, progress=None):
        self.supervisor, self.report, self._progress = supervisor, report, progress
        self._keeps, self._verdicts, self._recorded = bool(options.report), {}, {}
        self._seals = {}  # {the first four of a verdict: the seal on its files}
        #: what failed outside of the runs
        self.broken = []
        chosen = select(entries(options.corpus), options.case, options.schedule, options.ranks)
        self._expectations = {(e.case, e.schedule, e.ranks): Expectation(e.folder) for e in chosen}
        self.describe = supervisor.describe()
        takes = self.describe["schedules"]
        self.entries = [entry for entry in chosen if takes == "any" or entry.schedule in takes]
        self.left_out = [entry.schedule for entry in chosen if takes != "any" and entry.schedule not in takes]
        if not self.entries:
            has = ", ".join(sorted({entry.schedule for entry in entries(options.corpus)}))
            asked = "" if options.schedule == "*" else f" (--schedule {options.schedule})"
            names = ", ".join(takes) or "none"
            raise FormatError(
                f"no case{asked} comes under the schedules of {self.describe['name']}: {names}; the corpus has {has}"
            )

    def judge_all(self):
        self._progress.begin(len(self.entries), self.left_out)
        try:
            for ranks, of_job in by_ranks(self.entries):
                with contextlib.closing(self.judged(ranks, of_job)) as verdicts:  # after it the backend writes nothing more
                    for verdict in verdicts:
                        self._put(verdict)
        finally:
            if self._verdicts:
                self._record()

    def judged(self, ranks, of_job):
        """Runs these entries, all on `ranks` ranks, and yields the verdict on each as it ends; and last, at the end of the
        backend, a second one, which counts, on each whose files have changed since, also on other numbers of ranks."""
        out = self._out(ranks)
        job = job_of(of_job, ranks, out, self.supervisor.seconds)
        cases, job_file = job["cases"], os.path.join(out, "job.json")
        verdict = lambda one, *said: Verdict(one["id"], one["schedule"], ranks, TRANSPORT, *said)
        write_json(job_file, job)
        plan = self.supervisor.plan(job_file)
        left = []
        for one, entry in zip(cases, of_job):
            answer = plan.get((entry.case, entry.schedule), "")
            if answer is None:
                left.append(one)
            else:
                yield verdict(one, *(("UNSUPPORTED", answer) if answer else ("ERROR", "plan gave no answer for it")))
        not_run = list(left)
        run = self.supervisor.run(job | {"cases": left}, out, self._begins, lambda *said: self._broken(ranks, *said))
        with contextlib.closing(run):
            for one, status, reason in run:
                not_run.remove(one)
                yield verdict(one, *((status, reason) if status else self._judge(one, ranks, out)))
        for one in not_run:
            yield verdict(one, "NOT RUN", "the run ended before it")
        yield from self._broken_seals()
        write_json(job_file, job)

    def _broken_seals(self):
        """A verdict for each seal that is broken, once."""
        for identity, seal in list(self._seals.items()):
            if why := seal.why_broken():
                del self._seals[identity]
                yield Verdict(*identity, "ERROR", why)

    def _broken(self, ranks, how, why):
        see = f" (see {os.path.join(self.report, LOG)})" if self._keeps and size_of(self.supervisor.log) else ""
        on = f"{ranks} rank{'' if ranks == 1 else 's'}"
        self.broken.append(shown(f"{self.describe['name']} on {on} {how}: {why}{see}"))
        if self._progress:
            self._progress.broken(self.broken[-1])

    def _out(self, ranks):
        return output_folder(self.report, TRANSPORT, ranks)

    def _judge(self, one, ranks, out):
        """(status, clause); seals the files if this is a verdict that a change of them can change."""

        def files():
            try:
                return rank_files(os.path.join(out, one["results"]), TRANSPORT, ranks)
            except FormatError as error:
                raise FormatError(str(error).removeprefix(out + os.sep)) from None

        try:
            seal = Seal(files)
        except FormatError as error:
            return "ERROR", str(error)
        if not seal.files:
            first = f"{one['results']}0.safetensors"
            return "ERROR", f"said to be done, but there is no file {first} nor of another rank"
        case = self._expectations[one["id"], one["schedule"], ranks]
        if why := case.why_not_judged():
            return "NOT JUDGED", why
        status, clause = judge(case, seal.files, self.describe["delivers"], rank_of)
        if status != "ERROR":
            self._seals[one["id"], one["schedule"], ranks, TRANSPORT] = seal
        return status, clause

    def _begins(self, one):
        if self._progress:
            self._progress.working_on(one["id"], one["schedule"])

    def _put(self, verdict):
        has_ended_badly = verdict.status in ("ERROR", "TIMEOUT")
        if has_ended_badly and size_of(self.supervisor.log):
            verdict = verdict._replace(log=LOG)
        self._verdicts[verdict[:4]] = verdict
        if has_ended_badly or verdict.status == "NOT RUN":  # files tell the others
            case = self._expectations[verdict[:3]]
            self._recorded[verdict[:4]] = append_recorded(self.report, verdict, case, self.describe)
        self._progress.finished(verdict)

    def _record(self):
        """run.json, with which `plumbline check` and `plumbline-case check` judge the folder again, and report.json."""
        runs = [
            {
                "case": v.case,
                "schedule": v.schedule,
                "csv": "",
                "ranks": v.ranks,
                "transport": v.transport,
                "unsupported": v.clause if v.status == "UNSUPPORTED" else "",
            }
            for v in self._verdicts.values()
        ]
        first = self.entries[0]
        seed = self._expectations[first.case, first.schedule, first.ranks].json["seed"]
        record = {"schema": RUN_SCHEMA, "backend": self.describe["name"], "describe": self.describe, "seed": str(seed)}
        write_json(os.path.join(self.report, "run.json"), record | {"microbatches": 0, "options": {}, "runs": runs})
        if self.broken:
            write_report(self.report, self.describe, list(self._recorded.values()), self.broken)
