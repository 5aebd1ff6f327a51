"""Runs cases on a backend in processes of its own, without plumbline's program: what `plumbline run --backend` does.

A crash or a hang ends only the current case: the processes are killed, and the others run in new ones.
"""

import json
import os
import queue
import re
import shlex
import signal
import socket
import subprocess
import threading
import time

from .reasons import reason_in
from .schema import FormatError, check

# Behind a launcher's label, an event is none.
HIDDEN = re.compile(r".*\S.*@plumbline case (0|[1-9][0-9]*) (begins|done|failed: .*)")
EVENT = re.compile(r"@plumbline case (0|[1-9][0-9]*) (begins|done|failed: .*)")
SECONDS = 120.0  # the limit of a case
START = 120.0  # seconds until describe and plan end, and until run's first event
GRACE = 2.0  # seconds in which the other ranks may end after one has failed
# As plumbline's own: containers usually run as root, and more ranks than cores must start. The user's variables prevail.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_hwloc_default_binding_policy": "none",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_orte_abort_print_stack": "0",
}


class BackendError(Exception):
    """The backend did not start or does not keep the protocol: nothing can be judged. One line."""


class Supervisor:
    """`words` start the backend. `processes`: the number of ranks to start, None for one process that acts as all;
    `launcher`: words that start them in place of this class ("mpirun -n {np}"). `seconds`: the limit of a case, which the
    user sets by `option`."""

    def __init__(self, words, log, processes=None, launcher=None, seconds=SECONDS, option="--timeout"):
        self.words, self.log, self.seconds, self.option = words, log, seconds, option
        self.processes, self.launcher = processes, launcher

    def describe(self):
        answer = self._answer("describe")
        self._check(answer, "describe")
        return answer

    def _check(self, answer, schema):
        try:
            check(answer, schema, schema)
        except FormatError as error:
            raise BackendError(str(error)) from None

    def plan(self, job_file):
        """{(id, schedule): None or why not}"""
        answers = self._answer("plan", "--job", job_file)
        self._check(answers, "plan")
        return {(a["id"], a["schedule"]): None if a["supported"] else a["why"] for a in answers}

    def _answer(self, verb, *options):
        answer = self.output(verb, verb, *options)
        try:
            return json.loads(answer)
        except ValueError:
            raise BackendError(f"{verb}: expected one JSON value, got {answer[:80].decode(errors='replace')!r}") from None

    def output(self, what, *words):
        """The bytes that the program prints when it is started once with these words."""
        with open(self.log, "ab") as log:
            begin = log.tell()
            try:
                done = subprocess.run(
                    [*self.words, *words],
                    env=ENVIRONMENT | os.environ,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    timeout=START,
                )
            except subprocess.TimeoutExpired:
                raise BackendError(f"{what}: no end within {START:.0f} s") from None
            except OSError as error:
                raise BackendError(f"{what}: {error}") from None
        if done.returncode:
            why = last_words(self.log, begin)
            if why.startswith("--backend"):  # there is no such class
                raise FormatError(why)
            raise BackendError(f"{what}: exited with code {done.returncode}: {why}".rstrip(": "))
        return done.stdout

    def run(self, job, out):
        """Runs the cases of the job, whose files are relative to `out`. Yields (case, status, reason) as they end:
        status None: it is done, and its files can be judged; else "ERROR" or "TIMEOUT". Raises BackendError if the
        backend ends before the first event."""
        left, started, repeated = list(job["cases"]), False, False
        while left:
            job_file = os.path.join(out, "job.json")
            write_json(job_file, job | {"cases": left})
            running, reported = None, 0
            with Processes(self, ["run", "--job", job_file, "--out", out], job["ranks"]) as processes:
                for event in processes.events(lambda: self._limit(running is not None)):
                    match = EVENT.fullmatch(event)
                    number = int(match[1]) if match else None
                    if not match or number != reported or (match[2] == "begins") != (running is None):
                        processes.problem = f"an event that does not follow: {event[:80]}"
                        repeated = bool(match) and (number < reported or number == reported and running is not None)
                        if repeated:
                            processes.problem += " (only one process may print events: do two act as rank 0?)"
                        break
                    started = True
                    if match[2] == "begins":
                        running = left[number]
                        continue
                    why = match[2].removeprefix("failed: ")
                    processes.told.append(why)
                    yield running, None if match[2] == "done" else "ERROR", why
                    running, reported = None, reported + 1
            if running is not None:
                yield running, "TIMEOUT" if processes.late else "ERROR", processes.reason()
                reported += 1
            elif not started:
                raise BackendError(f"run: {processes.reason()}")
            if repeated and reported == len(left):
                raise BackendError(f"run: {processes.reason()}")
            if repeated or running is None and (reported == 0 or processes.succeeded()):
                for case in left[reported:]:
                    yield case, "ERROR", f"did not begin: {processes.reason()}"
                return
            left = left[reported:]

    def _limit(self, is_in_case):
        """Seconds until the next event, and what is said if none comes."""
        if is_in_case:
            return self.seconds, f"the case did not end within {self.seconds:g} s ({self.option})"
        return START, f"no event within {START:g} s"


class Processes:
    """The processes of one start; on leaving, none of them is left."""

    def __init__(self, supervisor, verb, ranks):
        self._log, self.problem = supervisor.log, None
        #: which wait was too long, "no event within 120 s"
        self.late = ""
        #: the first line with an event behind other words
        self.hidden = None
        #: of the cases that have ended
        self.told = []
        self._log_begin = os.path.getsize(self._log) if os.path.exists(self._log) else 0
        count, self._started, self._lines = supervisor.processes or 1, [], queue.Queue()
        words = [*supervisor.words, *verb]
        starts = [(words, {})]
        if supervisor.launcher:
            starts = [([w.replace("{np}", str(count)) for w in shlex.split(supervisor.launcher)] + words, {})]
        elif supervisor.processes:
            shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count)}
            shared["LOCAL_WORLD_SIZE"] = str(count)
            starts = [(words, shared | {"RANK": str(r), "LOCAL_RANK": str(r)}) for r in range(count)]
        with open(self._log, "ab") as log:
            for number, (argv, environment) in enumerate(starts):
                try:
                    process = subprocess.Popen(
                        argv,
                        env=ENVIRONMENT | os.environ | environment,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE if number == 0 else log,
                        stderr=log,
                        start_new_session=True,
                    )
                except OSError as error:
                    self.problem = str(error)
                    break
                self._started.append(process)
        if self._started:
            threading.Thread(target=self._read, args=[self._started[0].stdout], daemon=True).start()

    def _read(self, stream):
        for line in stream:
            self._lines.put(line.decode(errors="replace").rstrip("\n"))
        self._lines.put(None)

    def events(self, limit):
        """The lines of rank 0 that are events, until all processes have ended, one has failed, or no event comes in time:
        limit() returns the seconds, and what is said after them."""
        (seconds, too_late), ending, more = limit(), None, True
        deadline = time.monotonic() + seconds
        while not self.problem:
            try:
                line = self._lines.get(timeout=0.02)
                more = line is not None
                if more and line.startswith("@plumbline"):
                    yield line
                    seconds, too_late = limit()
                    deadline = time.monotonic() + seconds
                elif more and not self.hidden and HIDDEN.fullmatch(line[:200].rstrip()):
                    self.hidden = line[:200].rstrip()
                continue
            except queue.Empty:
                pass
            codes, now = [process.poll() for process in self._started], time.monotonic()
            if None not in codes and not more:
                return
            if ending is None and (any(codes) or None not in codes):
                ending = now
            if ending is not None and now > ending + GRACE:
                return
            if now > deadline:
                self.late = too_late
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.codes = [process.poll() for process in self._started]
        for process in self._started:
            try:
                os.killpg(process.pid, signal.SIGKILL)  # its children too
            except ProcessLookupError:
                pass
            process.wait()

    def succeeded(self):
        return not self.problem and not self.late and bool(self.codes) and not any(self.codes) and None not in self.codes

    def reason(self):
        if not self.hidden:
            return self._ending()
        words = "on standard output is no event, since other words precede it; let the launcher print lines without its labels"
        return f'{self._ending()}; "{self.hidden}" {words}'

    def _ending(self):
        if self.problem:
            return self.problem
        if self.late:
            return self.late
        killed = next((rank for rank, code in enumerate(self.codes) if code is not None and code < 0), None)
        if killed is not None:
            return self._end_of(killed)
        ended = [rank for rank, code in enumerate(self.codes) if code is not None]
        failed = [rank for rank in ended if self.codes[rank]]
        words = last_words(self._log, self._log_begin, self.told) if failed else ""
        if not words:
            return self._end_of((failed or ended)[0])
        # A rank that ended without a word may be the cause of what another one says.
        silent = [rank for rank in failed if f"rank {rank}: " not in log_from(self._log, self._log_begin)]
        return "; ".join([*map(self._end_of, silent if len(self.codes) > 1 else ()), words])

    def _end_of(self, rank):
        code, who = self.codes[rank], f"rank {rank} " if len(self.codes) > 1 else ""
        how = f"ended with exit code {code}" if code >= 0 else f"killed by signal {-code} ({signal.strsignal(-code)})"
        return who + how


def last_words(log, begin, told=()):
    return reason_in(log_from(log, begin), told)


def log_from(log, begin):
    with open(log, "rb") as file:
        file.seek(begin)
        return file.read().decode(errors="replace")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def write_json(path, document):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    os.replace(path + ".tmp", path)
