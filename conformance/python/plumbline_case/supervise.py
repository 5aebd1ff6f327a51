"""Runs cases on a backend in processes of its own, without plumbline's program: what `plumbline run --backend` does.

A crash or a hang ends only the current case: the processes are killed, and the others run in new ones. Of none a process is
left (guard.py), also if plumbline-case itself is killed.
"""

import contextlib
import errno
import json
import os
import queue
import re
import select
import shlex
import shutil
import signal
import socket
import subprocess
import threading
import time

from .capped_log import CappedLog
from .guard import LONGEST_END, guarded
from .launchers import RANK_VARIABLES
from .reasons import reason_in
from .regular import size_of
from .schema import FormatError, check, parse_json

PREFIX = "@plumbline "  # of an event
# Behind a launcher's label, an event is none.
HIDDEN = re.compile(r".*\S.*@plumbline case (0|[1-9][0-9]{0,17}) (begins|done|failed: .*)")
TWO_EVENTS = "@plumbline case "  # behind the begin of a line: two processes have written to it
EVENT = re.compile(r"@plumbline case (0|[1-9][0-9]{0,17}) (begins|done|failed: .*)")
SECONDS = 120.0  # the limit of a case
START = 120.0  # seconds until describe and plan end, and until run's first event
GRACE = 2.0  # seconds in which the other ranks may end after one has failed
LONGEST_LINE = 1 << 16  # bytes of an event
LONGEST_ANSWER = 1 << 26  # bytes of the answer to describe, plan or another question
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
    user sets by `option`. `temporary`: a folder that must not be left even if plumbline-case is killed."""

    def __init__(self, words, log, processes=None, launcher=None, seconds=SECONDS, option="--timeout", temporary=""):
        self.words, self.log, self.seconds, self.option, self.temporary = words, log, seconds, option, temporary
        self.processes, self.launcher = processes, launcher
        # One process that acts as all ranks is none of a launcher's around plumbline-case, such as a pod's.
        self.environment = {} if processes or launcher else dict.fromkeys(RANK_VARIABLES)

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
            return parse_json(answer, verb)
        except FormatError:
            raise BackendError(f"{verb}: expected one JSON value, got {answer[:80].decode(errors='replace')!r}") from None

    def output(self, what, *words):
        """The bytes that the program prints when it is started once with these words."""
        begin = size_of(self.log)
        log = CappedLog(self.log)
        try:
            program = Program([*self.words, *words], log, subprocess.PIPE, self.environment, self.temporary)
            with contextlib.closing(program):
                answer, late = program.answer(START)
        except OSError as error:
            raise BackendError(f"{what}: {error}") from None
        finally:
            log.close()
        if late:
            raise BackendError(f"{what}: no end within {START:.0f} s")
        if len(answer) > LONGEST_ANSWER:
            raise BackendError(f"{what}: more than {LONGEST_ANSWER >> 20} MiB on standard output")
        if program.code:
            why = last_words(self.log, begin)
            if why.startswith("--backend"):  # there is no such class
                raise FormatError(why)
            raise BackendError(f"{what}: exited with code {program.code}: {why}".rstrip(": "))
        return answer

    def run(self, job, out, begins=lambda case: None, broken=lambda how, why: None):
        """Runs the cases of the job, whose files are relative to `out`. Calls begins(case) as they begin, and yields
        (case, status, reason) as they end: status None: it is done, and its files can be judged; else "ERROR" or
        "TIMEOUT". Calls broken(how, why) for a failure outside of the cases; those that are not yielded have then not been run.
        Raises BackendError if the backend ends before the first event."""
        left, is_first = job["cases"], True
        while left:
            write_json(os.path.join(out, "job.json"), job | {"cases": left})
            events = Events(left)
            processes = yield from self._start(job["ranks"], out, events, begins)
            left, why = left[events.ended :], processes.reason
            if events.repeated:  # another start would have it as well
                return broken("failed", why())
            if events.is_in_case:
                left = left[1:]
            elif is_first and not events.any:
                raise BackendError(f"run: {why()}")
            elif processes.succeeded():
                yield from ((case, "ERROR", f"did not begin: {why()}") for case in left)
                return
            elif events.any:
                broken("failed between two cases", why())
            else:
                return broken("did not start again", why())
            is_first = False

    def _start(self, ranks, out, events, begins):
        """Runs the cases of `events` in one start, as far as it comes. Yields as run() does, and returns the processes."""
        words = ["run", "--job", os.path.join(out, "job.json"), "--out", out]
        with Processes(self, words, ranks) as processes:
            for line in processes.events(lambda: self._limit(events)):
                word, why = events.take(line)
                if not word:
                    processes.problem = why
                    break
                if word == "begins":
                    begins(events.case)
                    continue
                processes.told.append(why)
                processes.settle_log()
                yield events.cases[events.ended - 1], None if word == "done" else "ERROR", why
        if events.is_in_case:
            yield events.case, "TIMEOUT" if processes.late else "ERROR", processes.reason()
        return processes

    def _limit(self, events):
        """Seconds until the next event or the end, and what is said if none comes."""
        if events.is_in_case:
            return self.seconds, f"the case did not end within {self.seconds:g} s ({self.option})"
        if not events.any:
            return START, f"no event within {START:g} s"
        # What a backend does behind its last case takes no longer than a case.
        seconds = min(START, self.seconds) if events.ended == len(events.cases) else START
        option = f" ({self.option})" if seconds < START else ""
        return seconds, f"no other case begun and no end within {seconds:g} s{option}"


class Events:
    """What one start says of its cases."""

    def __init__(self, cases):
        self.cases, self.ended, self.is_in_case = cases, 0, False
        #: whether the last event says again what was said
        self.repeated = False

    @property
    def any(self):
        return self.is_in_case or self.ended > 0

    @property
    def case(self):
        """The one that runs."""
        return self.cases[self.ended]

    def take(self, line):
        """("begins", ""), ("done", ""), ("failed", why) or, for an event that cannot be, ("", why not). "begins" is optional."""
        match = EVENT.fullmatch(line)
        number, said = (int(match[1]), match[2]) if match else (None, "")
        if number == self.ended < len(self.cases) and not (said == "begins" and self.is_in_case):
            self.is_in_case = said == "begins"
            self.ended += not self.is_in_case
            word, _, why = said.partition(": ")
            return word, why
        if match:
            self.repeated = number < self.ended or number == self.ended and self.is_in_case
        else:
            self.repeated = TWO_EVENTS in line[1:]
        two = " (only one process may print events: do two act as rank 0?)" if self.repeated else ""
        return "", f"an event that does not follow: {line[:80]}{two}"


class Program:
    """A program under a guard. Throws OSError if there is none. `output`: subprocess.PIPE, or a descriptor. `environment`:
    what it has beside the variables of this process, and with None what it has not."""

    def __init__(self, words, log, output, environment, temporary):
        if not shutil.which(words[0]):
            number = errno.EACCES if os.path.exists(words[0]) else errno.ENOENT
            raise OSError(number, os.strerror(number), words[0])
        variables = ENVIRONMENT | os.environ | environment
        control, self._control = os.pipe()
        try:
            self._process = subprocess.Popen(
                guarded(words, control, temporary),
                env={name: value for name, value in variables.items() if value is not None},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log.descriptor,
                pass_fds=[control],
                start_new_session=True,
            )
        except OSError:
            os.close(self._control)
            raise
        finally:
            os.close(control)
        self.stdout = self._process.stdout

    def poll(self):
        """The exit code; -N after signal N; None while it runs."""
        return self._process.poll()

    @property
    def code(self):
        return self._process.returncode

    def answer(self, seconds):
        """(standard output until its end, whether there was no end in time); a byte more than LONGEST_ANSWER at most."""
        deadline, pieces, size = time.monotonic() + seconds, [], 0
        while size <= LONGEST_ANSWER:
            if not select.select([self.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return b"", True
            if not (piece := os.read(self.stdout.fileno(), 1 << 16)):
                break
            pieces.append(piece)
            size += len(piece)
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()) if size <= LONGEST_ANSWER else 0)
        except subprocess.TimeoutExpired:
            return b"".join(pieces), size <= LONGEST_ANSWER
        return b"".join(pieces), False

    def end(self):
        """Ends it, and all that it left."""
        os.close(self._control)
        try:
            self._process.wait(LONGEST_END + GRACE)
        except subprocess.TimeoutExpired:  # the guard is stopped, for one: then the kernel ends the program
            self._process.kill()
            self._process.wait()

    def close(self):
        self.end()
        if self.stdout:
            self.stdout.close()


class Lines:
    """The lines of a stream. A reader that does not take them keeps the writer waiting; a line that is too long is cut."""

    def __init__(self, descriptor):
        self._lines, self._closed = queue.Queue(maxsize=1000), False
        self._thread = threading.Thread(target=self._read, args=[descriptor], daemon=True)
        self._thread.start()

    def get(self, timeout):
        """The next line; None: there are no more. Raises queue.Empty."""
        return self._lines.get(timeout=timeout)

    def stop(self):
        """No more lines are taken."""
        self._closed = True

    def join(self):
        """Called when no process holds the other end any more."""
        self._thread.join(timeout=LONGEST_END)

    def _read(self, descriptor):
        line = b""
        while not self._closed and (piece := os.read(descriptor, 1 << 16)):
            first, *more = piece.split(b"\n")
            line = (line + first)[:LONGEST_LINE]
            for next_line in more:
                self._put(line)
                line = next_line[:LONGEST_LINE]
        if line:
            self._put(line)
        self._put(None)

    def _put(self, line):
        while not self._closed:
            with contextlib.suppress(queue.Full):
                return self._lines.put(line if line is None else line.decode(errors="replace"), timeout=0.1)


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
        self._log_begin = size_of(self._log)
        count, self._started, self._lines = supervisor.processes or 1, [], None
        words = [*supervisor.words, *verb]
        starts = [(words, supervisor.environment)]
        if supervisor.launcher:
            starts = [([w.replace("{np}", str(count)) for w in shlex.split(supervisor.launcher)] + words, {})]
        elif supervisor.processes:
            shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count)}
            shared["LOCAL_WORLD_SIZE"] = str(count)
            starts = [(words, shared | {"RANK": str(r), "LOCAL_RANK": str(r)}) for r in range(count)]
        self._kept = CappedLog(self._log)
        for number, (argv, environment) in enumerate(starts):
            output = subprocess.PIPE if number == 0 else self._kept.descriptor
            try:
                self._started.append(Program(argv, self._kept, output, environment, supervisor.temporary))
            except OSError as error:
                self.problem = str(error)
                break
        if self._started:
            self._lines = Lines(self._started[0].stdout.fileno())

    def events(self, limit):
        """The lines of rank 0 that are events, until all processes have ended, one has failed, or no event comes in time:
        limit() returns the seconds, and what is said after them."""
        (seconds, too_late), ending, more = limit(), None, True
        deadline = time.monotonic() + seconds
        while not self.problem:
            now = time.monotonic()
            if now > deadline:
                self.late = too_late
                return
            try:
                line = self._lines.get(timeout=0.02) if more else None
                more = line is not None
                if more and line.startswith(PREFIX):
                    yield line
                    seconds, too_late = limit()
                    deadline = time.monotonic() + seconds
                elif more and not self.hidden and HIDDEN.fullmatch(line[:200].rstrip()):
                    self.hidden = line[:200].rstrip()
                if more:
                    continue
                time.sleep(0.02)
            except queue.Empty:
                pass
            codes = [program.poll() for program in self._started]
            if None not in codes and not more:
                return
            if ending is None and (any(codes) or None not in codes):
                ending = now
            if ending is not None and now > ending + GRACE:
                return

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.codes = [program.poll() for program in self._started]
        if self._lines:
            self._lines.stop()
        for program in self._started:
            program.end()
        if self._lines:
            self._lines.join()
            self._started[0].stdout.close()
        self._kept.close()

    def settle_log(self):
        """The log has all that was written until now."""
        self._kept.settle()

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
