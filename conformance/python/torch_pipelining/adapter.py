"""A backend of plumbline: PyTorch's own torch.distributed.pipelining, on the CPU over gloo.

usage: adapter.py [--stages manual|static|traced] describe
       adapter.py [--stages ...] plan --job J
       adapter.py [--stages ...] run --job J --out D

`run` starts its ranks itself (forked.py), so that torch is imported once; under torchrun or mpirun it is one of their ranks.
support.py states which cases are supported; execution.py turns a case into stages and a schedule.
"""

import argparse
import contextlib
import datetime
import importlib.metadata
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from forked import execute_cases  # noqa: E402
from plumbline_case import Backend  # noqa: E402
from plumbline_case.backend import launched  # noqa: E402
from support import Files, why_not  # noqa: E402

TRACED = ("output", "loss", "grad", "grad-norm", "buffer", "param", "hook-calls")
MODULES = ("forward", "backward", "input-grad", *TRACED)
DELIVERS = {"manual": MODULES, "static": MODULES, "traced": TRACED}
# What PyTorch's pipelining leaves to its user: this adapter does it, so these cases test it together with PyTorch.
HELP = (
    "gradients of shared parameters summed by the adapter",
    "losses divided, added and scaled in the adapter's loss function",
    "gradients unscaled, and clipped by a norm that the adapter reduces over ranks",
    "steps skipped by all ranks if a gradient of one is not finite",
)
LOCAL = "losses of early stages backpropagated by an autograd function in the stage"


class Pipelining(Backend):
    level = "stage"
    version = libtorch = importlib.metadata.version("torch").split("+")[0]  # importing torch takes seconds

    def __init__(self, stages):
        self.features = HELP if stages == "traced" else (*HELP, LOCAL)
        self.name, self.stages, self.delivers = f"torch.distributed.pipelining ({stages} stages)", stages, DELIVERS[stages]

    def why_not(self, case):
        return why_not(Files(case.folder), self.version, self.stages == "traced")

    def prepare(self, case):
        from execution import Execution

        return Execution(case.folder, self.stages, self.delivers)

    def run(self, case, prepared):
        prepared.run()
        return prepared.recorder.results

    def barrier(self, files):
        import torch.distributed as dist

        dist.barrier()

    def run_job(self, job, folder, out, tell):
        if place := launched():
            store = "env://" if "MASTER_ADDR" in os.environ else f"file://{os.path.abspath(out)}/rendezvous"
            with group(store, *place, job):
                super().run_job(job, folder, out, tell)
            return

        def run(rank, first, store, tell_parent):
            self.rank, self.world_size = rank, job["ranks"]
            with group(store, rank, job["ranks"], job):
                self.run_cases(job, folder, out, tell_parent, first)

        execute_cases(len(job["cases"]), job["ranks"], run, tell)

    def failed(self, number, error, tell):
        """Any failure ends all ranks: the launcher, or execute_cases, starts them again."""
        why = f"rank {self.rank}: {root_of(error)}"
        if launched():
            print(f"plumbline: {why}", file=sys.stderr, flush=True)
        else:
            tell(number, "failed", why)
        raise error


@contextlib.contextmanager
def group(store, rank, ranks, job):
    """The process group of a job."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    timeout = datetime.timedelta(seconds=job["timeout_seconds"])
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks, timeout=timeout)
    yield
    dist.destroy_process_group()


def root_of(error):
    """The first error, in one line: PyTorch wraps it in further errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="adapter.py", description=__doc__.splitlines()[0], add_help=False)
    parser.add_argument("--stages", choices=DELIVERS, default="manual", help="how PyTorch's stages are built")
    options, verb = parser.parse_known_args()
    Pipelining(options.stages).main(verb)
