"""What the scripts of this folder share: PyTorch's pipelining on ranks of this machine over gloo, without plumbline.

A script has a program `program(pipe, bug)` and the right answer. compare() runs it under every schedule that could show
the deviation, twice: without the trigger (bug=False), the control, which must be right, and with it.
"""

import datetime
import logging
import multiprocessing
import os
import queue
import re
import signal
import sys
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, schedules
from torch.distributed.tensor import DTensor

logging.disable(logging.ERROR)
torch.set_num_threads(1)

CPU = torch.device("cpu")
CLASSES = {
    "GPipe": schedules.ScheduleGPipe,
    "1F1B": schedules.Schedule1F1B,
    "Interleaved1F1B": schedules.ScheduleInterleaved1F1B,
    "LoopedBFS": schedules.ScheduleLoopedBFS,
    "InterleavedZeroBubble": schedules.ScheduleInterleavedZeroBubble,
    "ZBVZeroBubble": schedules.ScheduleZBVZeroBubble,
    "DualPipeV": schedules.ScheduleDualPipeV,
}
SINGLE = ("GPipe", "1F1B")  # they take one stage a rank, not a list
LOOPED = (*SINGLE, "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble")
V = ("ZBVZeroBubble", "DualPipeV")  # two stages a rank; the last one shares its rank with the first
WHOLE = ("GPipe", "1F1B", "Interleaved1F1B", "LoopedBFS")
HALVES = ("InterleavedZeroBubble", *V)  # the backward in halves
EVERY = (*WHOLE, *HALVES)
NONE = ("no schedule",)
TIMEOUT = datetime.timedelta(seconds=10)  # of a message
GRACE = 2  # seconds in which the other ranks may end after a failure


class Failed(Exception):
    """A rank failed; the text is its first error, in one line."""


class Pipe:
    """One rank's part of a pipeline, or of one of its data-parallel replicas."""

    def __init__(self, schedule, rank, ranks, stages, replicas=1):
        """The ranks of replica r follow those of replica r - 1."""
        self.name, self._stages = schedule, stages
        self.replica, self.rank = divmod(rank, ranks)
        self.group = self.peers = None
        if replicas > 1:
            every = [range(ranks * r, ranks * (r + 1)) for r in range(replicas)]
            self.group = dist.new_subgroups_by_enumeration([list(own) for own in every], timeout=TIMEOUT)[0]
            self.peers = dist.new_subgroups_by_enumeration([list(own) for own in zip(*every)], timeout=TIMEOUT)[0]
        self.own = [self.rank, 2 * ranks - 1 - self.rank] if schedule in V else list(range(self.rank, stages, ranks))

    def build(self, modules, microbatches, loss=None, shapes=None, replicate=None, work=None, **options):
        """`modules`: of all stages, or what pipeline() returned; `shapes`: of each stage's inputs, and of the result;
        `replicate(module)`: the module of a stage as a data-parallel replica; `work`: {stage: its dw_builder}."""
        if isinstance(modules, list):
            self.modules = {s: modules[s] for s in self.own}
            options_of = {s: {"dw_builder": builder} for s, builder in (work or {}).items()}
            stages = [
                self._stage(s, replicate(m) if replicate else m, shapes, options_of.get(s, {})) for s, m in self.modules.items()
            ]
        else:
            stages = [modules.build_stage(s, CPU) for s in self.own]
            self.modules = {s: stage.submod for s, stage in zip(self.own, stages, strict=True)}
        self.use(CLASSES[self.name](stages[0] if self.name in SINGLE else stages, microbatches, loss_fn=loss, **options))

    def _stage(self, index, module, shapes, options):
        given = {} if shapes is None else {"input_args": shapes[index], "output_args": shapes[index + 1]}
        return without_messages_to_itself(PipelineStage(module, index, self._stages, CPU, group=self.group, **given, **options))

    def use(self, schedule):
        self.schedule = schedule

    def step(self, *batch, target=None, **keywords):
        return self._call(self.schedule.step, batch, target, keywords)

    def eval(self, *batch, target=None, **keywords):
        with torch.no_grad():
            return self._call(self.schedule.eval, batch, target, keywords)

    def _call(self, call, batch, target, keywords):
        """The batch goes to the first stage, the target to the last one."""
        to_last = {} if target is None or not self.has_last else {"target": target}
        return call(*(batch if self.has_first else ()), **to_last, **keywords)

    @property
    def has_first(self):
        return 0 in self.own

    @property
    def has_last(self):
        return self._stages - 1 in self.own

    def gradients(self):
        """{"stage N": the sum of each parameter's gradient, None without one}, rounded to what float32 can tell apart."""
        of_replica = f" of replica {self.replica}" if self.group else ""
        return {
            f"stage {s}{of_replica}": [
                None if p.grad is None else round(whole(p.grad).sum().item(), 4) for p in module.parameters()
            ]
            for s, module in self.modules.items()
        }


def whole(tensor):
    """The tensor of which FSDP gives each replica a part."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def without_messages_to_itself(stage):
    """2.11 begins with a message to each neighbour, also on the same rank, which gloo rejects: v_schedule_over_gloo.py."""
    if operations := getattr(stage, "_get_init_p2p_neighbors_ops", None):
        stage._get_init_p2p_neighbors_ops = lambda: [op for op in operations() if op.peer != dist.get_rank()]
    return stage


def compare(what, program, right, *, stages=2, replicas=1, schedules=EVERY, error=None):
    """Runs both programs, prints a sentence, and ends the process: with 1 if the deviation is there, with 0 if not, and with 2
    if something else is wrong (a control, another exception).

    program(pipe, bug) returns {name: value} of its rank; `right` is what all ranks return together, or a function of `bug`.
    `error` is a pattern of the exception in which the deviation may show itself. A silent deviation is told first.
    """
    answers = {}  # what is seen: the schedules
    for schedule in schedules:
        for bug in (False, True):
            expected = right(bug) if callable(right) else right
            try:
                seen = _run(program, schedule, stages, replicas, bug)
            except Failed as failure:
                if not bug or error is None or not re.search(error, str(failure)):
                    _other(f"{'with' if bug else 'without'} the trigger, under {schedule}: {failure}")
                answers.setdefault((1, str(failure)), []).append(schedule)
                continue
            if not bug and seen != expected:
                _other(f"without the trigger, under {schedule}: {_difference(seen, expected)}")
            elif bug:
                told = (2, "right") if seen == expected else (0, _difference(seen, expected))
                answers.setdefault(told, []).append(schedule)
    told = [f"{text} ({', '.join(under)})" for (_, text), under in sorted(answers.items())]
    if any(kind == 0 for kind, _ in answers):  # a silent deviation has no exception's text
        told = [f"an exception ({', '.join(under)})" if kind == 1 else text
                for text, ((kind, _), under) in zip(told, sorted(answers.items()), strict=True)]  # fmt: skip
    print(f"torch {torch.__version__}: {what}: {'; '.join(told)}")
    sys.exit(1 if any(kind < 2 for kind, _ in answers) else 0)


def _difference(seen, expected):
    keys = sorted({*seen, *expected}, key=str)
    pairs = [f"{key} {seen.get(key)} for {expected.get(key)}" for key in keys if seen.get(key) != expected.get(key)]
    return ", ".join(pairs)


def _other(text):
    print(f"torch {torch.__version__}: not what this script is about: {text}")
    sys.exit(2)


def _run(program, schedule, stages, replicas, bug):
    """What all ranks return together."""
    ranks = 1 if schedule in NONE else stages // 2 if schedule in V else stages
    context = multiprocessing.get_context("fork")
    answers, merged = context.Queue(), {}
    with tempfile.TemporaryDirectory() as folder:
        arguments = (program, schedule, ranks, stages, replicas, bug, folder, answers)
        processes = [context.Process(target=_rank, args=(r, *arguments), daemon=True) for r in range(ranks * replicas)]
        for process in processes:
            process.start()
        try:
            failures = _collect(processes, answers, merged)
        finally:
            for process in processes:
                process.kill()
                process.join()
    if failures:  # the first one that is not caused by the end of another rank
        raise Failed(next((why for why in failures if "onnection" not in why), failures[0]))
    return merged


def _collect(processes, answers, merged):
    """Adds the answers of all ranks to `merged`; returns the failures in the order in which they came."""
    failures, left, deadline = [], set(range(len(processes))), time.monotonic() + 60
    while left and time.monotonic() < deadline:
        try:
            rank, answer, why = answers.get(timeout=0.05)
        except queue.Empty:
            died = [rank for rank in left if processes[rank].exitcode not in (None, 0)]
            for rank in died:
                left.discard(rank)
                failures.append(f"Killed: {signal.strsignal(-processes[rank].exitcode)}")
        else:
            left.discard(rank)
            merged |= answer or {}
            failures += [why] if why else []
        if failures:
            deadline = min(deadline, time.monotonic() + GRACE)
    return failures or (["Hung: a rank gave no answer"] if left else [])


def _rank(rank, program, schedule, ranks, stages, replicas, bug, folder, answers):
    torch.manual_seed(0)
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                world_size=ranks * replicas, timeout=TIMEOUT)  # fmt: skip
        answers.put((rank, program(Pipe(schedule, rank, ranks, stages, replicas), bug), None))
    except BaseException as error:
        while error.__cause__ is not None:
            error = error.__cause__
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        answers.put((rank, None, f"{type(error).__name__}: {lines[0] if lines else ''}"))
    finally:
        answers.close()
        answers.join_thread()
        os._exit(0)  # the other ranks notice
