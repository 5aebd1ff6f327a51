"""A backend of plumbline as one class: it says what it can do, prepares a case and runs it.

    class Mine(Backend):
        name, schedules = "my pipeline", ["gpipe"]
        delivers = ("output", "loss", "grad")

        def run(self, case, prepared):
            results = Results()
            ...                                    # results.put(step, "loss", None, microbatch, "loss", value)
            return results

    if __name__ == "__main__":
        Mine().main()                              # the verbs describe, plan and run of INTERPRETING.md, Protocol

The class does the rest: the answers to describe and plan, the job file, the progress events, and result files that
appear at once.
"""

import argparse
import contextlib
import json
import os
import sys
import time
import traceback

from .accepted import check_attributes
from .case import load
from .launchers import launched
from .reasons import place, place_of, told
from .results import Results
from .schema import FormatError, check, read_json

__all__ = ["Backend"]
# Users' code round the backward, and in the loss (Case.extras()).
USERS_CODE = {"accumulation_hooks", "loss_parameters", "weight_closures"}
# Why a backend declines the cases of Case.givens() that it does not name.
WITHOUT = {
    "divided": "a batch that its user divides, with micro-batches of several lengths: this backend takes whole batches",
    "whole_gradients": "gradients read from inputs that are given whole: this backend makes leaves of micro-batches",
    "some_gradients": "inputs that require gradients in some micro-batches only: this backend has them in all or in none",
    "several_targets": "a structure of several targets: this backend takes one tensor of targets",
    "early_exits": "micro-batches that leave at an early stage: in this backend outputs come from the last one",
}


class Backend:
    """A pipeline that runs cases. Override run(), and the attributes that are not true of yours.

    What it says of itself:

    name, version      of your pipeline
    schedules          "any", or the names of the schedules that it runs
    delivers           the kinds of results that it delivers in every case; other kinds are not compared
    level              "program": it runs the op graph; "stage": modules that the loader made; "model": the named model
    order              "given": it executes schedule.csv; "own": its own order of the schedule of that name
    libtorch           the version of LibTorch that computes; None: none
    device             where it computes: "cpu" or "cuda"
    features, wire     see *describe* in INTERPRETING.md

    What it can do; cases that need more are declined, with the reason:

    steps              the kinds of steps
    operators          names of the opset; None: all
    losses             the kinds of the loss; None: all
    dtypes             element types of parameters, "F32", ...; None: all
    extras             which of these it has, each of which only some cases ask for (Case.extras()): of the loss
                       "class_weights", "added", "local_losses", "loss_divisor", "loss_parameters"; of the optimizer
                       "weight_decay", "loss_scale", "skip_nonfinite", "clip", "resumes"; of the backward
                       "accumulation_hooks", "weight_closures"
    givens             in which of these ways it takes a batch (Case.givens()): "divided" by the user into micro-batches;
                       "whole_gradients", read from the whole inputs; "some_gradients", of the inputs of some micro-batches
                       only; "early_exits", micro-batches that leave an evaluation at an early stage; "several_targets", in
                       a dict or list
    input_gradients    whether it delivers gradients of the model's inputs
    parameter_hooks    whether it calls users' hooks on parameters
    boundary_hooks     whether it lets users have hooks on values between stages
    replicas           whether it runs several data-parallel replicas of the pipeline
    shards_parameters  whether the replicas can divide the parameters among them
    offloads           whether it moves activations away and back where the schedule has OFFLOAD and RELOAD

    What it is told, before prepare():

    rank, world_size   of this process; alone (world_size 1) it acts as all ranks of a case
    started            when its job was written, in nanoseconds: all ranks of a start have the same, other starts another
    timeout            the longest wait for one message, in seconds
    """

    name = "unnamed"
    version = "0"
    schedules = "any"
    delivers = ("output", "loss", "grad")
    level = "program"
    order = "given"
    libtorch = None
    device = "cpu"
    features = ()
    wire = ()

    steps = ("train", "eval", "zero_grad")
    operators = None
    losses = None
    dtypes = None
    extras = ()
    givens = ()
    input_gradients = False
    parameter_hooks = False
    boundary_hooks = False
    replicas = False
    shards_parameters = False
    offloads = False

    rank = 0
    world_size = 1
    started = 0
    timeout = 60.0

    def why_not(self, case):
        """Why it cannot run the case, or None. Override it to refuse more: `return super().why_not(case) or ...`."""
        limits = (
            ("steps", {step["kind"] for step in case.steps}, self.steps),
            ("operators", case.operators(), self.operators),
            ("losses", {case.json["loss"]["kind"]}, self.losses),
            ("element types", {case.dtype, *(one["dtype"] for one in case.program["parameters"])}, self.dtypes),
        )
        for what, needed, able in limits:
            if able is not None and (beyond := needed - set(names(able))):
                return f"{what} beyond those supported: {', '.join(sorted(beyond))}"
        # A case that has more than the backend knows must not run as if it had not.
        if beyond := case.extras() - set(names(self.extras)):
            return f"no {', '.join(sorted(beyond))}"
        for what in ("input_gradients", "parameter_hooks", "boundary_hooks"):
            if case.json[what] and not getattr(self, what):
                return f"no {what.replace('_', ' ')}"
        return None

    def declines(self, case):
        """Why plan declines the case, or None: first what no why_not() has to look at."""
        if case.replicas > 1 and not self.replicas:
            return f"{case.replicas} data-parallel replicas of the pipeline: this backend runs one"
        if case.shards_parameters and not self.shards_parameters:
            return "parameters divided among replicas: each replica of this backend keeps the whole"
        if case.offloads and not self.offloads:
            return "OFFLOAD and RELOAD of activations"
        if beyond := case.extras() & USERS_CODE - set(names(self.extras)):
            return f"no {', '.join(sorted(beyond))}"
        if beyond := case.givens() - set(names(self.givens)):
            return WITHOUT[min(beyond)]
        return self.why_not(case)

    def start(self, job):
        """Called once, before the first case of a job: slow imports, connections between ranks."""

    def prepare(self, case):
        """Builds what run() needs for a case: this rank's stages, parameters, connections."""

    def run(self, case, prepared):
        """Executes the steps of a case. Returns the Results of this rank; `prepared` is what prepare() returned.
        Alone (self.world_size is 1) a process acts as all case.ranks ranks and returns the results of all, or a list with
        those of each: then all that several ranks have, as the gradient of a shared parameter, is judged."""
        raise NotImplementedError(f"{type(self).__name__} has no run(case, prepared)")

    def rank_in(self, case):
        """Which rank of the case this process is. Override it for an engine that numbers the ranks of several replicas
        otherwise than rank p of replica d as d * case.pipeline_ranks + p."""
        return self.rank

    # --- the verbs -------------------------------------------------------------------------------------------------

    def describe(self):
        """The answer to describe. Raises FormatError, in one line, if an attribute says what means nothing."""
        check_attributes(self, Backend)
        answer = {
            "protocol": 1,
            "name": self.name,
            "version": self.version,
            "schedules": self.schedules if self.schedules == "any" else names(self.schedules),
            "delivers": names(self.delivers),
            "level": self.level,
            "order": self.order,
            "features": [
                *names(self.features),
                *(["replicas"] if self.replicas else []),
                *(["offload"] if self.offloads else []),
            ],
        }
        answer |= {"libtorch": self.libtorch} if self.libtorch else {}
        answer |= {"device": self.device} if self.device != "cpu" else {}
        answer |= {"wire": names(self.wire)} if self.wire else {}
        check(answer, "describe", f"{type(self).__name__}: describe")
        return answer

    def plan(self, job, folder):
        """An answer for each case of the job, whose paths are relative to `folder`."""
        for one in job["cases"]:
            reason = self.declines(load(os.path.join(folder, one["folder"])))
            answer = {"id": one["id"], "schedule": one["schedule"], "supported": not reason}
            yield answer | ({"why": reason} if reason else {})

    def run_job(self, job, folder, out, tell):
        """Runs the cases of a job. tell(number, "begins"), tell(number, "done") and tell(number, "failed", why) report
        its progress."""
        self.rank, self.world_size = launched(job["ranks"]) or (0, 1)
        try:
            self.start(job)
        except Exception as error:
            self.gave_up(error, f"rank {self.rank}: " if self.world_size > 1 else "")
        self.run_cases(job, folder, out, tell)

    def run_cases(self, job, folder, out, tell, first=0):
        """This rank's part of the cases from number `first` on."""
        self.timeout = job["timeout_seconds"]
        for number, one in list(enumerate(job["cases"]))[first:]:
            if self.rank == 0:
                tell(number, "begins")
            try:
                case = load(os.path.join(folder, one["folder"]))
                file = lambda rank: os.path.join(out, f"{one['results']}{rank}.safetensors")
                self.write(self.run(case, self.prepare(case)), case, file)
                self.barrier([file(rank) for rank in range(self.world_size)])
            except Exception as error:
                traceback.print_exc()
                self.failed(number, error, tell)
                continue
            if self.rank == 0:
                tell(number, "done")

    def write(self, made, case, file):
        """Writes what run() returned to file(rank) of each rank. What is wrong with it has its place where run() begins."""
        try:
            for rank, results in self.by_rank(case, made).items():
                results.write(file(rank))
        except (TypeError, FormatError) as error:
            raise type(error)(f"{error}{place_of(type(self).run)}") from None

    def by_rank(self, case, made):
        """{rank: Results} of what run() returned."""
        several = isinstance(made, (list, tuple)) and self.world_size == 1 and len(made) == case.ranks
        found = dict(enumerate(made)) if several else {self.rank_in(case): made}
        for one in found.values():
            if not isinstance(one, Results):
                many = f" of {len(made)}" if isinstance(made, (list, tuple)) and one is made else ""
                wanted = f"or a list of {case.ranks}, each rank's"
                if self.world_size > 1:
                    wanted = f"since there are {self.world_size} processes: each returns those of its own rank"
                raise TypeError(f"run() returned {type(one).__name__}{many}; expected plumbline_case.Results, {wanted}")
        return found

    def failed(self, number, error, tell):
        """After an exception in a case. Alone, it goes on with the next case; with other ranks, this one ends, and its
        launcher ends the others."""
        why = told(error, self)
        if self.world_size > 1:
            print(f"plumbline: rank {self.rank}: {why}", file=sys.stderr, flush=True)
            raise error
        tell(number, "failed", why)

    def gave_up(self, error, who=""):
        """After an exception outside of the cases: ends this process."""
        traceback.print_exc()
        print(f"plumbline: {who}{told(error, self)}", file=sys.stderr, flush=True)
        sys.exit(1)

    def barrier(self, files):
        """Returns on rank 0 once every rank has written its results: each rank writes one of the files."""
        deadline = time.monotonic() + self.timeout
        while self.rank == 0 and (missing := [file for file in files if not os.path.exists(file)]):
            if time.monotonic() > deadline:
                raise TimeoutError(f"no results of another rank within {self.timeout} s: {missing[0]}")
            time.sleep(0.001)

    def main(self, arguments=None):
        """Does the verb that the command line names, and ends the process."""
        parser = argparse.ArgumentParser(description="A backend of plumbline: INTERPRETING.md, Protocol.")
        parser.add_argument("verb", choices=("describe", "plan", "run"))
        parser.add_argument("--job", help="the job file")
        parser.add_argument("--out", help="the folder for results")
        options = parser.parse_args(arguments)
        for option in {"plan": ("job",), "run": ("job", "out")}.get(options.verb, ()):
            if getattr(options, option) is None:
                parser.error(f"{options.verb} needs --{option}")
        answer = sys.stdout
        # The answers and events are all that plumbline reads there: any other text goes to standard error.
        with contextlib.redirect_stdout(sys.stderr):
            try:
                if options.verb == "describe":
                    print(json.dumps(self.describe()), file=answer)
                    sys.exit(0)
                job, folder = read_json(options.job, "job"), os.path.dirname(os.path.abspath(options.job))
                if options.verb == "plan":
                    print(json.dumps(list(self.plan(job, folder))), file=answer)
                    sys.exit(0)
            except (FormatError, OSError) as error:
                print(f"plumbline: {error}{place(error, self)}", file=sys.stderr)
                sys.exit(2)
            except Exception as error:
                self.gave_up(error)

            def tell(number, what, why=""):
                # One write for the line: output of another process on the same pipe cannot come between.
                print(f"@plumbline case {number} {what}" + (f": {why}" if why else "") + "\n", end="", file=answer, flush=True)

            self.started = os.stat(options.job).st_mtime_ns
            self.run_job(job, folder, options.out, tell)


def names(given):
    """A list of names. One may stand alone: ("gpipe") is a string."""
    return [given] if isinstance(given, str) else list(given)
