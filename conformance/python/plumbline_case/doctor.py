"""plumbline-case doctor: examines a backend step by step, down to a first comparison, as `plumbline doctor` does."""

import os
import shlex
from collections import Counter

from .again import again, pasted
from .corpus import entries, near_names, select
from .expectation import Expectation
from .judge import Verdict, judge, merge, rank_of, read_file, read_ranks
from .loading import check_launcher, command, find_program, is_class
from .number_text import shown
from .report_folder import output_folder, rank_files, result_prefix
from .results import parse_key
from .run import LOG, TRANSPORT, job_of
from .schema import FormatError
from .stopping import temporary_folder
from .supervise import BackendError, Supervisor, write_json

QUICK = "exact-mlp-sum", "gpipe"  # the case and the schedule to begin with, if the backend takes them
SOME = 3  # reasons or keys that are named


class Fault(Exception):
    """What is wrong, and what to do."""


class Steps:
    """Prints the finding of each step; after a failure the others, which depend on it, are not tried."""

    def __init__(self):
        self.failed = False

    def take(self, name, body):
        """`body` returns its finding, or raises an exception with the fault and its remedy."""
        if self.failed:
            print(f"not tried  {name}", flush=True)
            return
        try:
            print(f"ok         {name}: {shown(body())}", flush=True)
        except (Fault, BackendError, FormatError) as error:
            self.failed = True
            print(f"failed     {name}: {shown(str(error).removeprefix(f'{name}: '))}", flush=True)


class Examination:
    def __init__(self, options, folder):
        self.options, self.folder, self.entry = options, folder, None
        # A wrong --corpus or --ranks is no finding about the backend.
        self.corpus = entries(options.corpus)
        numbers = {entry.ranks for entry in self.corpus}
        self.ranks = options.ranks or (2 if 2 in numbers else min(numbers))
        self.corpus = select(self.corpus, ranks=self.ranks)
        self.expectations = {entry.folder: Expectation(entry.folder) for entry in self.corpus}
        self.out = output_folder(folder, TRANSPORT, self.ranks)

    def exit_code(self):
        steps = Steps()
        for name in "file", "program", "launcher", "describe", "schedules", "plan", "run":
            steps.take(name, getattr(self, name))
        for name in "result files", "keys", "first comparison":
            steps.take(name, getattr(self, name.replace(" ", "_")))
        return 1 if steps.failed else 0

    # --- how it starts ----------------------------------------------------------------------------------------------
    def file(self):
        spec, options = self.options.backend, self.options
        words = command(spec)
        log = os.path.join(self.folder, LOG)
        processes = self.ranks if options.ranks or options.launcher else None
        self.supervisor = Supervisor(words, log, processes, options.launcher, options.timeout, temporary=self.folder)
        return f"the class {'' if ':' in spec else 'in '}{spec}" if is_class(spec) else f"the command {shlex.join(words)}"

    def program(self):
        if is_class(self.options.backend):
            self.supervisor.output("import", "--help")
            return "the class is imported, and an object of it made"
        return find_program(self.supervisor.words[0])

    def launcher(self):
        if not self.options.launcher:
            return "none: " + (f"{self.ranks} processes" if self.options.ranks else "one process acts as all ranks")
        return check_launcher(self.options.launcher, self.ranks)

    # --- what it answers --------------------------------------------------------------------------------------------
    def describe(self):
        try:
            self.about = self.supervisor.describe()
        except BackendError as error:
            raise Fault(f"{error}; try: {self.verb('describe')}") from None
        if "models" in self.about:
            raise Fault("it has models of its own, and takes no cases: `plumbline doctor` examines those")
        takes = self.about["schedules"]
        schedules = "any schedule" if takes == "any" else f"{len(takes)} schedules"
        return f"{self.about['name']} {self.about['version']}; delivers {', '.join(self.about['delivers'])}; {schedules}"

    def schedules(self):
        takes, known = self.about["schedules"], sorted({entry.schedule for entry in self.corpus})
        if takes == "any":
            return "any"
        here = [name for name in takes if name in known]
        if not here:
            names = ", ".join(takes) or "an empty list"
            raise Fault(f"no case comes under {names}, which describe names; give some of {', '.join(known)}, or \"any\"")
        others = [name for name in takes if name not in known]
        return ", ".join(here) + (f" (without a case in this corpus: {', '.join(others)})" if others else "")

    def plan(self):
        takes = self.about["schedules"]
        asked = [entry for entry in self.corpus if takes == "any" or entry.schedule in takes]
        self.job = job_of(asked, self.ranks, self.out, self.supervisor.seconds)
        job_file = os.path.join(self.out, "job.json")
        write_json(job_file, self.job)
        try:
            answers = self.supervisor.plan(job_file)
        except BackendError as error:
            raise Fault(f"{error}; {self.log_of()}") from None
        for entry in asked:
            if (entry.case, entry.schedule) not in answers:
                raise Fault(f"no answer for {entry.case} x {entry.schedule}; every case of the job needs one")
        able = [entry for entry in asked if answers[entry.case, entry.schedule] is None]
        not_judged = {entry: self.expectations[entry.folder].why_not_judged() for entry in able}
        self.entry = next((entry for entry in sorted(able, key=quickness) if not not_judged[entry]), None)
        if not self.entry:
            reasons = Counter(not_judged.get(entry) or answers[entry.case, entry.schedule] for entry in asked)
            why = "".join(f"; {count} x {reason}" for reason, count in reasons.most_common(SOME))
            raise Fault(f"none of the {len(asked)} runs is supported and exact, so there is nothing to try{why}")
        what = f"{self.entry.case} x {self.entry.schedule} on {self.ranks} ranks"
        return f"{what} is supported; of {len(asked)} runs {len(able)} are"

    # --- what it computes -------------------------------------------------------------------------------------------
    def run(self):
        job = job_of([self.entry], self.ranks, self.out, self.supervisor.seconds)
        try:
            broken = []
            ended = list(self.supervisor.run(job, self.out, broken=lambda _, why: broken.append(why)))
        except BackendError as error:
            said, _, hidden = str(error).partition("; ")
            if said != "run: ended with exit code 0":
                raise Fault(f"{error}; {self.log_of()}") from None
            events = "`@plumbline case 0 begins` and `... done` to standard output, each a line, and to flush it"
            raise Fault(f"it said nothing; rank 0 has to print {events}{hidden and '; ' + hidden}") from None
        for why in [*(why for _, status, why in ended if status), *broken]:
            raise Fault(f"{why}; {self.log_of()}")
        return "case 0 began and was done"

    def result_files(self):
        prefix = result_prefix(self.entry.case, self.entry.schedule)
        try:
            self.files = rank_files(os.path.join(self.out, prefix), TRANSPORT, self.ranks)
        except FormatError as error:
            raise Fault(str(error).removeprefix(self.out + os.sep)) from None
        if not self.files:
            of_job = '(the job file\'s "results", the rank, ".safetensors")'
            raise Fault(f"none below --out; for rank 0 there should be {prefix}0.safetensors {of_job}")
        return f"{len(self.files)}, {sum(len(read_file(file, rank_of)) for file in self.files)} tensors"

    def keys(self):
        """Each can be read, and they are those of the case."""
        found, wanted = merge(read_ranks(self.files, rank_of))[0], self.expectations[self.entry.folder].expected()
        wanted = {key for key in wanted if parse_key(key).kind in self.about["delivers"]}
        found = {key for key in found if parse_key(key).kind in self.about["delivers"]}
        missing, more = sorted(wanted - found), sorted(found - wanted)
        if more:
            near = f"; near: {', '.join(near_names(missing or wanted, more[0]))}" if wanted else ""
            raise Fault(f"{len(more)} of {len(found)} do not belong to {self.entry.case}: {some(more)}{near}")
        if missing:
            kinds = ", ".join(sorted({parse_key(key).kind for key in missing}))
            remedy = f"deliver them, or let `delivers` not name {kinds}"
            raise Fault(f"{len(missing)} of {len(wanted)} are missing: {some(missing)}; {remedy}")
        return f"{len(found)} can be read, the first is {min(found, default='none')}"

    def first_comparison(self):
        status, clause = judge(self.expectations[self.entry.folder], self.files, self.about["delivers"], rank_of)
        said = Verdict(self.entry.case, self.entry.schedule, self.ranks, TRANSPORT, status, clause).sentence()
        if status == "SKIPPED":  # its files would not tell more
            raise Fault(said)
        if status != "PASS":
            raise Fault(f"{said}; its files are kept by: {self.again()} --report DIR")
        return said

    # --- what to do -------------------------------------------------------------------------------------------------
    def verb(self, verb):
        """What a user would type."""
        spec = self.options.backend
        return pasted("backend", spec, verb) if is_class(spec) else f"{spec} {verb}"

    def again(self):
        return again(self.options, self.entry)

    def log_of(self):
        return f"all that it wrote is in DIR/{LOG} after: {self.again()} --report DIR"


def examine(options):
    """Prints a line for each step. Returns the exit code."""
    with temporary_folder() as folder:
        return Examination(options, folder).exit_code()


def quickness(entry):
    """Sorts cases: the quick one of `plumbline doctor` first, then small ones."""
    size = os.path.getsize(os.path.join(entry.folder, "tensors.safetensors"))
    return entry.case != QUICK[0], entry.schedule != QUICK[1], size, entry.name


def some(keys):
    return ", ".join(keys[:SOME]) + (", ..." if len(keys) > SOME else "")
