"""Ranks on this machine for the scripts that show a deviation of an engine with that engine alone: nothing here imports
plumbline.

A script exits with 1 if the deviation is there, with 0 if not, and with 2 and one line if something else is wrong.
"""

import ctypes
import datetime
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from multiprocessing import connection

import torch
import torch.distributed as dist

torch.set_num_threads(1)  # before ranks are forked, which have none of this process's threads
GRACE = 2  # seconds after a failure in which other ranks may tell its cause
OF_ANOTHER = re.compile("[Cc]onnection|[Bb]roken pipe")  # in the error of a rank that lost another one
PR_SET_PDEATHSIG = 1


class Failed(Exception):
    """Ranks failed, most often one; `why` is the reason alone, in one line."""

    def __init__(self, ranks, why):
        super().__init__(f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}: {why}")
        self.why = why


def answers(count, body, seconds=60, message_seconds=10):
    """[rank]: what body(rank) returns, each in a process of its own, a rank of torch.distributed over gloo in which no
    message takes longer than `message_seconds`. Raises Failed for the first rank that raises or is killed, and for those
    that have not answered after `seconds`. No process is left."""
    context, processes, pipes = multiprocessing.get_context("fork"), [], []
    with tempfile.TemporaryDirectory() as folder:

        def answer(rank):
            dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count,
                                    timeout=datetime.timedelta(seconds=message_seconds))  # fmt: skip
            return body(rank)

        try:
            for rank in range(count):
                here, there = context.Pipe(duplex=False)
                process = context.Process(target=_rank, args=(rank, answer, there, os.getpid()))
                process.start()
                there.close()  # the rank has the only end to write to, which is closed when it ends
                processes.append(process)
                pipes.append(here)
            return _collect(processes, pipes, seconds)
        finally:
            for process in processes:
                process.kill()
                process.join()


def run(count, body, expected=None, **limits):
    """As answers(). Any failure but one with the `expected` words shows nothing, and ends the script."""
    try:
        return answers(count, body, **limits)
    except Failed as failed:
        if expected is None or expected not in failed.why:
            fail(failed)
        raise


def fails(call, *arguments, expected, **words):
    """Why a rank fails in this call, as `expected`; None if none fails."""
    try:
        call(*arguments, expected=expected, **words)
    except Failed as failed:
        return failed.why
    return None


def control(right):
    """What works has to work, or else the script shows nothing."""
    if not right:
        fail("the control fails")


def fail(why):
    print(f"not what this script is about: {why}", file=sys.stderr)
    sys.exit(2)


def conclude(engine, wrong, there, fine):
    """Prints the observation, and ends the script. `engine`: its name and version; `wrong`: whether the deviation is there."""
    print(f"{engine}: {there if wrong else fine}")
    sys.exit(1 if wrong else 0)


def _collect(processes, pipes, seconds):
    """[rank]: its answer."""
    given, failures, left = {}, [], dict(zip(pipes, range(len(pipes)), strict=True))
    deadline = time.monotonic() + seconds
    while left and (rest := deadline - time.monotonic()) > 0:
        for pipe in connection.wait(left, rest):
            rank = left.pop(pipe)
            try:
                given[rank], why = pipe.recv()
            except (EOFError, OSError):
                processes[rank].join()
                why = _ending(processes[rank].exitcode)
            if why:
                failures.append((rank, why))
                deadline = min(deadline, time.monotonic() + GRACE)
    if failures:
        rank, why = next((failure for failure in failures if not OF_ANOTHER.search(failure[1])), failures[0])
        raise Failed([rank], why)
    if left:
        raise Failed(list(left.values()), f"no answer within {seconds} s")
    return [given[rank] for rank in range(len(pipes))]


def _rank(rank, answer, there, script):
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # ends this rank with the script
    try:
        if os.getppid() == script:
            there.send((answer(rank), None))
    except BaseException as error:
        there.send((None, _words(error)))
    finally:
        os._exit(0)  # the other ranks notice


def _words(error):
    """The first error in one line: engines wrap it in others."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else _place(error)}"


def _place(error):
    """The function in which an error without words was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"in {frames[-1].name}" if frames else "no words"


def _ending(code):
    """How a rank ended without an answer."""
    if code < 0:
        return f"killed by signal {-code} ({signal.strsignal(-code)})"
    return f"ended with exit code {code}, without an answer"
