"""What the scripts of this folder share: PyTorch's pipelining over gloo, without plumbline.

A script has a program `program(pipe, bug)` and the right answer. compare() runs it under every schedule that could show
the deviation, twice: without the trigger (bug=False), the control, which must be right, and with it.
"""

import datetime
import inspect
import logging
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from deviation_ranks import Failed, answers, conclude, fail  # noqa: E402
from torch.distributed.pipelining import PipelineStage, schedules  # noqa: E402
from torch.distributed.tensor import DTensor  # noqa: E402

logging.disable(logging.ERROR)

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


def compare(what, program, right, *, stages=2, replicas=1, schedules=EVERY, error=None, argument=None):
    """Runs both programs, prints a sentence, and ends the process: with 1 if the deviation is there, with 0 if not, and with 2
    if something else is wrong (a control, another exception).

    program(pipe, bug) returns {name: value} of its rank; `right` is what all ranks return together, or a function of `bug`.
    `error` is a pattern of the exception in which the deviation may show itself. A silent deviation is told first. `argument`
    of step() is what the program needs: a version without it does not have the deviation.
    """
    if argument and argument not in inspect.signature(CLASSES["GPipe"].step).parameters:
        conclude(f"torch {torch.__version__}", False, None, f"{what}: step() has no {argument}")
    observed = {}  # what is seen: the schedules
    for schedule in schedules:
        for bug in (False, True):
            expected = right(bug) if callable(right) else right
            try:
                seen = _run(program, schedule, stages, replicas, bug)
            except Failed as failed:
                if not bug or error is None or not re.search(error, failed.why):
                    fail(f"{'with' if bug else 'without'} the trigger, under {schedule}: {failed}")
                observed.setdefault((1, failed.why), []).append(schedule)
                continue
            if not bug and seen != expected:
                fail(f"without the trigger, under {schedule}: {_difference(seen, expected)}")
            elif bug:
                told = (2, "right") if seen == expected else (0, _difference(seen, expected))
                observed.setdefault(told, []).append(schedule)
    told = [f"{text} ({', '.join(under)})" for (_, text), under in sorted(observed.items())]
    if any(kind == 0 for kind, _ in observed):  # a silent deviation has no exception's text
        told = [f"an exception ({', '.join(under)})" if kind == 1 else text
                for text, ((kind, _), under) in zip(told, sorted(observed.items()), strict=True)]  # fmt: skip
    found = f"{what}: {'; '.join(told)}"
    conclude(f"torch {torch.__version__}", any(kind < 2 for kind, _ in observed), found, found)


def _difference(seen, expected):
    keys = sorted({*seen, *expected}, key=str)
    pairs = [f"{key} {seen.get(key)} for {expected.get(key)}" for key in keys if seen.get(key) != expected.get(key)]
    return ", ".join(pairs)


def _run(program, schedule, stages, replicas, bug):
    """What all ranks return together."""
    ranks = 1 if schedule in NONE else stages // 2 if schedule in V else stages

    def of_rank(rank):
        torch.manual_seed(0)
        return program(Pipe(schedule, rank, ranks, stages, replicas), bug)

    merged = {}
    for answer in answers(ranks * replicas, of_rank, message_seconds=TIMEOUT.seconds):
        merged |= answer
    return merged
