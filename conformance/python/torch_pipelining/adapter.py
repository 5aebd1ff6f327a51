"""A backend of plumbline: PyTorch's own torch.distributed.pipelining, on the CPU over gloo.

usage: adapter.py [--stages manual|static|traced] describe
       adapter.py [--stages ...] plan --job J
       adapter.py [--stages ...] run --job J --out D

`run` starts its ranks itself, so that torch is imported once; under torchrun or mpirun it is one rank of theirs.
What it can and cannot be asked is in support.py; how a case becomes stages and a schedule in execution.py.
"""

import argparse
import datetime
import importlib.metadata
import json
import os
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

DELIVERS = {
    "manual": ["forward", "output", "loss", "backward", "grad", "buffer", "param", "input-grad", "hook-calls"],
    "static": ["forward", "output", "loss", "backward", "grad", "buffer", "param", "input-grad", "hook-calls"],
    "traced": ["output", "loss", "grad", "buffer", "param", "hook-calls"],
}


def torch_version():
    """Without importing it, which takes seconds."""
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


def run_rank(job, folder, out, stages, rank, ranks, store):
    """This rank's part of every case of the job."""
    import torch
    import torch.distributed as dist

    from execution import Execution

    torch.set_num_threads(1)
    timeout = datetime.timedelta(seconds=job["timeout_seconds"])
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=ranks, timeout=timeout)
    for number, one in enumerate(job["cases"]):
        if rank == 0:
            print(f"@plumbline case {number} begins", flush=True)
        try:
            execution = Execution(os.path.join(folder, one["folder"]), stages, DELIVERS[stages])
            execution.run()
            execution.recorder.write(os.path.join(out, f"{one['results']}{rank}.safetensors"))
            dist.barrier()
        except Exception as error:
            print(f"plumbline: rank {rank}: {one['id']} x {one['schedule']}: {root_of(error)}", file=sys.stderr, flush=True)
            raise
        if rank == 0:
            print(f"@plumbline case {number} done", flush=True)
    dist.destroy_process_group()


def root_of(error):
    """In one line, what went wrong first: PyTorch wraps it in what it was doing."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def start_ranks(job, run):
    """Forks the ranks; when one fails the others get a moment to say why they failed too, then are ended."""
    import torch.distributed.pipelining  # noqa: F401  imported once, before the ranks are forked

    children = {}
    for rank in range(job["ranks"]):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                run(rank)
                status = 0
            except Exception:
                pass  # it has said so
            finally:
                sys.stdout.flush()
                os._exit(status)
        children[child] = rank
    failed, deadline = False, None
    while children:
        child, status = os.waitpid(-1, os.WNOHANG)
        if child:
            children.pop(child)
            if status and not failed:
                failed, deadline = True, time.monotonic() + 2
        elif deadline and time.monotonic() > deadline:
            for other in children:
                os.kill(other, signal.SIGKILL)
            deadline = None
        else:
            time.sleep(0.02)
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(prog="adapter.py", description=__doc__.splitlines()[0])
    parser.add_argument("--stages", choices=DELIVERS, default="manual", help="how PyTorch's stages are made")
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
        run_rank(job, folder, options.out, options.stages, int(rank), ranks, store)
        return 0
    with tempfile.TemporaryDirectory() as rendezvous:
        store = f"file://{rendezvous}/store"
        return start_ranks(
            job, lambda r: run_rank(job, folder, options.out, options.stages, r, job["ranks"], store)
        )


if __name__ == "__main__":
    sys.exit(main())
