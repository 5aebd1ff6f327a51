"""The base of an adapter for an engine that runs on torch.distributed: its ranks, their process group, their failures.

    class MyEngine(GlooBackend):
        imports = ("my_engine",)

        def prepare(self, case): ...
        def run(self, case, prepared): ...      # unless prepared.run() executes the case and returns its Results
"""

import contextlib
import datetime
import importlib
import importlib.metadata
import os
import sys

from ..backend import Backend
from ..launchers import launched
from . import leftovers, messages, wire
from .forked import execute_cases


class GlooBackend(Backend):
    """A backend whose ranks are processes of torch.distributed over gloo, on the CPU; with `device` "cuda" over NCCL, on the
    machine's GPUs in turn, one of which suffices (docs/gpu.md).

    `run` of the command line starts the ranks itself (forked.py), so that torch and the engine are imported once; under
    torchrun or mpirun it is one of their ranks. self.rank and self.world_size are set before prepare().
    """

    level = "stage"
    wire = wire.WORDS
    libtorch = importlib.metadata.version("torch").split("+")[0]  # importing torch takes seconds
    imports = ()  # modules that are imported once, before the ranks are forked
    counts_replicas_first = False  # whether the engine's rank s * replicas + d has stage s of replica d
    _is_launched = False  # whether a launcher started this rank; otherwise it is forked

    def run(self, case, prepared):
        if not hasattr(prepared, "run"):
            return super().run(case, prepared)
        return prepared.run()

    def rank_in(self, case):
        if not self.counts_replicas_first:
            return super().rank_in(case)
        stage, replica = divmod(self.rank, case.replicas)
        return replica * case.pipeline_ranks + stage

    def barrier(self, files):
        """Returns once every rank has come so far. Raises if a message of the case is left over for the next one."""
        messages.flush()
        leftovers.check()

    def store(self, out):
        """Where ranks that a launcher started meet. A start that was killed leaves its file, with the addresses of dead ranks:
        the next one has another."""
        return "env://" if "MASTER_ADDR" in os.environ else f"file://{os.path.abspath(out)}/rendezvous-{self.started}"

    def run_job(self, job, folder, out, tell):
        if "wire" in job:
            messages.install()
        if place := launched(job["ranks"]):
            self._is_launched = True
            with process_group(self.store(out), *place, job, self.device):
                super().run_job(job, folder, out, tell)
            return

        def run(rank, first, store, tell_parent):
            self.rank, self.world_size = rank, job["ranks"]
            with process_group(store, rank, job["ranks"], job, self.device):
                self.run_cases(job, folder, out, tell_parent, first)

        self.import_engine()
        if why := execute_cases(len(job["cases"]), job["ranks"], run, tell):
            print(f"plumbline: {why}", file=sys.stderr, flush=True)
            sys.exit(1)

    def import_engine(self):
        """Once, before ranks are forked."""
        for module in ("torch.distributed", *self.imports):
            importlib.import_module(module)

    def main(self, arguments=None):
        words = sys.argv[1:] if arguments is None else arguments
        if words[:1] == ["prove"]:  # no verb of the protocol: users type it
            from ..prove.command import main

            sys.exit(main(self, words[1:]))
        super().main(arguments)

    def failed(self, number, error, tell):
        """Any failure ends all ranks: the launcher, or execute_cases, starts them again."""
        why = f"rank {self.rank}: {root_of(error)}"
        if self._is_launched:
            print(f"plumbline: {why}", file=sys.stderr, flush=True)
        else:
            tell(number, "failed", why)
        raise error


@contextlib.contextmanager
def process_group(store, rank, ranks, job, device="cpu"):
    """The process group of a job. With `device` "cuda" a GPU is torch's default device from then on."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    timeout = datetime.timedelta(seconds=job["timeout_seconds"])
    if device == "cuda":
        use_gpu(rank)
    over = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
    dist.init_process_group(over, init_method=store, rank=rank, world_size=ranks, timeout=timeout)
    with leftovers.counted(), wire.bad_wire(job["wire"].split(",") if "wire" in job else (), job["seed"], rank):
        yield
    dist.destroy_process_group()


def use_gpu(rank):
    """This process computes on a GPU of its machine, in float32 where a case says so."""
    import torch

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # what deterministic products ask for
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.set_default_device(device)
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.use_deterministic_algorithms(True)


def root_of(error):
    """The first error, in one line: engines wrap it in further errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"
