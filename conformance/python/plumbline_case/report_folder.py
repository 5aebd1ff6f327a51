"""The folder that `plumbline run --report DIR` and `plumbline-case run --report DIR` leave.

run.json                      the requested runs
results.jsonl, report.json    recorded verdicts; of plumbline-case only those that files do not tell, and report.json only of
                              a run in which something failed outside of the cases
results/own-4/                the output folder of a job, by transport and number of ranks
  job.json
  1f1b/ID/rank0.safetensors   the results of a rank
"""

import json
import os
from collections import Counter

from .expectation import Expectation
from .judge import Verdict, judge
from .number_text import shown
from .regular import expect_folders, open_regular
from .schema import FormatError, check_by, parse_json
from .supervise import write_json

# What a waived verdict was of results that are judged: other failures that a waiver may expect leave none.
BEFORE_WAIVERS = {"XFAIL": ("FAIL", "MISTRUSTED"), "XPASS": ("PASS",)}
WITHOUT_RESULTS = ("error", "timeout", "not-run")
NOT_COMPARED = ("unsupported", "skipped")  # with files or without
RUN_SCHEMA, REPORT_SCHEMA = "plumbline-run/1", "plumbline-report/3"
MOST_RANKS = 4096  # as plumbline's --ranks
# What is read here of run.json and of verdicts; the rest is for other readers. Names become paths.
TEXT, COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
RANKS = {"type": "integer", "minimum": 1, "exclusiveMaximum": MOST_RANKS + 1}
NAME = {"type": "string", "pattern": r"^(?!\.\.?\Z)[^/\x00]+\Z"}
SCHEDULE = {"type": "string", "pattern": r"^([^\x00]*/)?(?!\.\.?\Z)[^/\x00]+\Z"}  # a name, or the path of the user's own file


def an_object(**members):
    return {"type": "object", "required": list(members), "properties": members}


IDENTITY = {"case": NAME, "schedule": SCHEDULE, "ranks": RANKS, "transport": NAME}
RECORD = an_object(
    schema={"const": RUN_SCHEMA},
    describe={"type": ["object", "null"], "properties": {"delivers": {"type": "array", "items": TEXT}}},
    seed=TEXT,
    microbatches=COUNT,
    options={"type": "object"},
    runs={"type": "array", "items": an_object(**IDENTITY, unsupported=TEXT, csv=TEXT)},
)
VERDICT = an_object(**IDENTITY, status=TEXT, sentence=TEXT, waiver=TEXT, first={}, tensors=COUNT)
REPORT = {"type": "object", "required": ["verdicts"], "properties": {
    "verdicts": {"type": "array", "items": VERDICT}, "broken": {"type": "array", "items": TEXT}}}  # fmt: skip


def read_record(folder):
    """run.json. Raises FormatError, in one line, if it is missing or malformed."""
    path = os.path.join(folder, "run.json")
    if not os.path.exists(path):
        raise FormatError(
            f"{folder}: no run.json; expected the folder of `plumbline run --report` or `plumbline-case run --report`"
        )
    with open_regular(path) as file:
        record = parse_json(file.read(), path)
    check_by(RECORD, record, path)
    return record


def read_recorded(folder):
    """({(case, schedule, ranks, transport): verdict} as the run recorded them, what failed outside of the runs): of report.json
    of a finished run, else the lines of results.jsonl."""
    path, broken = os.path.join(folder, "report.json"), []
    if os.path.exists(path):
        with open_regular(path) as file:
            report = parse_json(file.read(), path)
        check_by(REPORT, report, path)
        verdicts, broken = report["verdicts"], report.get("broken", [])
    elif os.path.exists(path := os.path.join(folder, "results.jsonl")):
        with open_regular(path) as file:  # an interrupted run may leave an unfinished last line
            verdicts = [parse_json(line, path) for line in file if line.endswith(b"\n")]
        check_by({"type": "array", "items": VERDICT}, verdicts, path)
    else:
        verdicts = []
    return {(v["case"], v["schedule"], v["ranks"], v["transport"]): v for v in verdicts}, broken


def append_recorded(folder, verdict, case, describe):
    """Adds the verdict on a run without results to results.jsonl, with the members that plumbline's have. Returns it."""
    line = {"case": verdict.case, "title": case.json["title"], "schedule": verdict.schedule, "backend": describe["name"]}
    line |= {"device": device_of(describe), "dtype": case.dtype.lower(), "ranks": verdict.ranks, "transport": verdict.transport}
    line |= {"truth": case.truth, "status": verdict.status.lower().replace(" ", "-"), "reason": shown(verdict.clause)}
    line |= {"sentence": verdict.sentence(), "checked": [], "tensors": 0, "elements": 0, "seconds": 0.0, "repro": ""}
    line |= {"log": verdict.log}
    line |= {"waiver": "", "bound_use": None, "first": None, "differing_tensors": 0, "pattern": "",
             "differences": []}
    with open(os.path.join(folder, "results.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    return line


def write_report(folder, describe, verdicts, broken):
    """report.json of a run in which something failed outside of the cases, with the members that plumbline's has. `verdicts`:
    lines of append_recorded()."""
    summary = Counter(verdict["status"] for verdict in verdicts)
    backend = {"name": describe["name"], "version": describe["version"], "device": device_of(describe)}
    report = {"schema": REPORT_SCHEMA, "context": {}, "environment": {}, "backend": backend | {"describe": describe}}
    report |= {"exit_code": 1, "wall_seconds": 0.0, "summary": summary, "verdicts": verdicts, "throughput": []}
    write_json(os.path.join(folder, "report.json"), report | {"broken": broken, "notes": []})


def device_of(describe):
    """Where the backend computes, as its answer to describe says."""
    return describe.get("device", "cpu")


def output_folder(folder, transport, ranks):
    return os.path.join(folder, "results", f"{transport}-{ranks}")


def result_prefix(case, schedule):
    """The common prefix of the files of a run, relative to the output folder of its job."""
    return os.path.join(os.path.basename(schedule), case, "rank")


def rank_files(prefix, transport, ranks):
    """The result files of a run: of our own runtime one for each rank, of a foreign backend ("own") those that exist.
    Raises FormatError for a file that is called as if it were of another rank, and for a link in the place of its folder."""
    folder, start = os.path.split(prefix)
    schedules, case = os.path.split(folder)
    expect_folders(os.path.dirname(schedules), os.path.join(os.path.basename(schedules), case))
    if transport != "own":
        return [f"{prefix}{rank}.safetensors" for rank in range(ranks)]
    try:
        names = os.listdir(folder) if os.path.isdir(folder) else ()
    except OSError as error:
        raise FormatError(f"cannot read {folder}: {error.strerror}") from None
    wanted = {f"{start}{rank}.safetensors": rank for rank in range(ranks)}
    found = sorted(wanted[name] for name in names if name in wanted)
    others = (name for name in names if name.startswith(start) and name.endswith(".safetensors") and name not in wanted)
    if other := min(others, default=None):
        known = "1 rank: 0" if ranks == 1 else f"{ranks} ranks: 0 to {ranks - 1}"
        raise FormatError(f"{os.path.join(folder, other)}: no such rank; the job has {known}")
    return [f"{prefix}{rank}.safetensors" for rank in found]


class Checker:
    """Judges the runs of a report folder with the expected results of a corpus."""

    def __init__(self, folder, corpus):
        self.folder, self.corpus = folder, corpus
        self.record = read_record(folder)
        self.recorded, self.broken = read_recorded(folder)
        self.delivers = (self.record["describe"] or {}).get("delivers")
        # plumbline, which has options, logs each verdict as it judges, and may keep files of failures only.
        options = self.record["options"]
        self.has_log = bool(options) and os.path.exists(os.path.join(folder, "results.jsonl"))
        self.keeps_failures_only = options.get("keep") == "failures"
        #: runs whose recorded verdict contradicts their files, a line each
        self.problems = []

    def judge_all(self, progress):
        """Tells progress.Progress the verdict on each run."""
        progress.begin(len(self.record["runs"]))
        for run in self.record["runs"]:
            progress.working_on(run["case"], run["schedule"])
            progress.finished(self.verdict(run))
        for why in self.broken:
            progress.broken(why)

    def verdict(self, run):
        identity = (run["case"], run["schedule"], run["ranks"], run["transport"])
        said, has_files = self.recorded.get(identity), self.has_left_files(run)
        if said and left_nothing(said, has_files):
            return as_recorded(identity, said)
        if run["unsupported"]:
            return Verdict(*identity, "UNSUPPORTED", run["unsupported"])
        if said and said["status"] == "pass" and self.keeps_failures_only and not has_files:
            return as_recorded(identity, said)
        if not said and has_files and self.has_log:  # they may be of a half
            return Verdict(*identity, "NOT RUN", "the run ended before it was done")
        judged = Verdict(*identity, *self.judge(run))
        if not said or judged.status == "NOT JUDGED":
            return judged
        recorded = as_recorded(identity, said)
        before_waivers = BEFORE_WAIVERS.get(recorded.status, (recorded.status,))
        unwaived = recorded.clause.removesuffix(f" [{said['waiver']}]") if said["waiver"] else recorded.clause
        if judged.status not in before_waivers or judged.clause != unwaived:
            self.problems.append(f'the run recorded "{recorded.sentence()}", its files say "{judged.sentence()}"')
            return judged
        return recorded

    def files(self, run):
        """Those of its ranks, some of which may be missing. Raises FormatError, as rank_files() does."""
        out = output_folder(self.folder, run["transport"], run["ranks"])
        return rank_files(os.path.join(out, result_prefix(run["case"], run["schedule"])), run["transport"], run["ranks"])

    def has_left_files(self, run):
        """Also if they cannot be taken: judge() says why."""
        try:
            return any(map(os.path.lexists, self.files(run)))
        except FormatError:
            return True

    def judge(self, run):
        """(status, clause)"""
        try:
            files = self.files(run)
        except FormatError as error:
            return "ERROR", str(error)
        if not any(map(os.path.lexists, files)):
            return "NOT RUN", "the run ended before it"
        folder = os.path.join(self.corpus, run["case"], f"{run['schedule']}-{run['ranks']}")
        if os.path.basename(run["schedule"]) != run["schedule"] or not os.path.exists(os.path.join(folder, "case.json")):
            return "NOT JUDGED", "the corpus has no expected results for this schedule and number of ranks"
        case = Expectation(folder)
        if why := case.why_not_judged():
            return "NOT JUDGED", why
        if str(case.json["seed"]) != self.record["seed"] or self.record["microbatches"] not in (0, case.microbatches):
            return "NOT JUDGED", "the run has another seed or number of micro-batches than the corpus"
        return judge(case, files, self.delivers)


def left_nothing(said, has_files=False):
    """Whether the run ended without results that could be judged, as `plumbline check` sees it."""
    if said["status"] == "xfail":
        return said["first"] is None and said["tensors"] == 0
    return said["status"] in WITHOUT_RESULTS or (said["status"] in NOT_COMPARED and not has_files)


def as_recorded(identity, said):
    """The verdict of the record, in the words of the record."""
    verdict = Verdict(*identity, {"not-run": "NOT RUN"}.get(said["status"], said["status"].upper()))
    clause = said["sentence"].removeprefix(verdict.sentence()).removeprefix(": ")
    return verdict._replace(clause=clause, log=said.get("log", ""))  # a report before 0.2 has none
