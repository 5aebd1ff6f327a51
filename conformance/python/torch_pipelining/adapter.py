"""A backend of plumbline: PyTorch's own torch.distributed.pipelining, on the CPU over gloo.

usage: adapter.py [--stages manual|static|traced] describe
       adapter.py [--stages ...] plan --job J
       adapter.py [--stages ...] run --job J --out D

`run` starts its ranks itself (forked.py), so that torch is imported once; under torchrun or mpirun it is one of their ranks.
support.py states which cases are supported; execution.py turns a case into stages and a schedule.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from forked import execute_cases  # noqa: E402

DELIVERS = {
    "manual": ["forward", "output", "loss", "backward", "grad", "buffer", "param", "input-grad", "hook-calls"],
    "static": ["forward", "output", "loss", "backward", "grad", "buffer", "param", "input-grad", "hook-calls"],
    "traced": ["output", "loss", "grad", "buffer", "param", "hook-calls"],
}


def torch_version():
    """Describes the backend without importing torch, which takes seconds."""
    return importlib.metadata.version("torch").split("+")[0]


def describe(stages):
    version = torch_version()
    return {
        "protocol": 1,
        "name": f"torch.distributed.pipelining ({stages} stages)",
        "version": version,
        "features": [],
        "schedules": "any",
        "delivers": DELIVERS[stages],
        "level": "stage",
        "order": "given",
        "libtorch": version,
    }


def read_job(path):
    with open(path, encoding="utf-8") as file:
        job = json.load(file)
    return job, os.path.dirname(os.path.abspath(path))


def plan(job, folder, stages):
    from support import Files, why_not

    answers = []
    for one in job["cases"]:
        reason = why_not(Files(os.path.join(folder, one["folder"])), torch_version(), stages == "traced")
        answer = {"id": one["id"], "schedule": one["schedule"], "supported": reason is None}
        answers.append(answer if reason is None else answer | {"why": reason})
    return answers


def run_rank(job, folder, out, stages, rank, ranks, store, tell, first=0):
    """Executes this rank's part of the cases from number `first` on; tell(number, what) reports progress."""
    import torch
    import torch.distributed as dist

    from execution import Execution

    torch.set_num_threads(1)
    timeout = datetime.timedelta(seconds=job["timeout_seconds"])
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks, timeout=timeout)
    for number, one in list(enumerate(job["cases"]))[first:]:
        if rank == 0:
            tell(number, "begins")
        try:
            execution = Execution(os.path.join(folder, one["folder"]), stages, DELIVERS[stages])
            execution.run()
            execution.recorder.write(os.path.join(out, f"{one['results']}{rank}.safetensors"))
            dist.barrier()
        except Exception as error:
            tell(number, "failed", f"rank {rank}: {root_of(error)}")
            raise
        if rank == 0:
            tell(number, "done")
    dist.destroy_process_group()


def report_event(number, what, why=""):
    """For a rank that a launcher started: any failure ends all ranks, and plumbline restarts them."""
    if what == "failed":
        print(f"plumbline: {why}", file=sys.stderr, flush=True)
    else:
        print(f"@plumbline case {number} {what}", flush=True)


def root_of(error):
    """The first error, in one line: PyTorch wraps it in further errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def main():
    parser = argparse.ArgumentParser(prog="adapter.py", description=__doc__.splitlines()[0])
    parser.add_argument("--stages", choices=DELIVERS, default="manual", help="how PyTorch's stages are built")
    parser.add_argument("verb", choices=("describe", "plan", "run"))
    parser.add_argument("--job", help="the job file")
    parser.add_argument("--out", help="where results go")
    options = parser.parse_args()
    if options.verb == "describe":
        print(json.dumps(describe(options.stages), indent=1))
        return 0
    job, folder = read_job(options.job)
    if options.verb == "plan":
        print(json.dumps(plan(job, folder, options.stages), indent=1))
        return 0
    rank = os.environ.get("RANK", os.environ.get("OMPI_COMM_WORLD_RANK"))
    if rank is not None:
        ranks = int(os.environ.get("WORLD_SIZE", os.environ.get("OMPI_COMM_WORLD_SIZE")))
        store = "env://" if "MASTER_ADDR" in os.environ else f"file://{os.path.abspath(options.out)}/rendezvous"
        run_rank(job, folder, options.out, options.stages, int(rank), ranks, store, report_event)
        return 0

    def run(rank, first, store, tell):
        run_rank(job, folder, options.out, options.stages, rank, job["ranks"], store, tell, first)

    execute_cases(len(job["cases"]), job["ranks"], run)
    return 0


if __name__ == "__main__":
    sys.exit(main())
