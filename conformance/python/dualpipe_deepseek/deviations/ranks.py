"""Two ranks on this machine for the scripts in this folder: DualPipe over gloo, without plumbline."""

import datetime
import multiprocessing
import os
import sys
import tempfile

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import dualpipe  # noqa: E402
from dualpipe_cpu import dual_pipe  # noqa: E402

MICROBATCHES = 4  # two in each direction


class Failed(Exception):
    """The first failure of a rank that is not caused by the end of another rank."""


def train(stages, batch, shapes, loss=None):
    """[stage]: {parameter: gradient} after a step over two ranks, summed over the two replicas. `stages()` makes the two
    stages, `batch` has the model's inputs, `shapes` are those between the stages; `loss` is the sum of the first output,
    unless given."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        queue = context.Queue()
        processes = [context.Process(target=_rank, args=(r, stages, batch, shapes, loss or _loss, folder, queue))
                     for r in range(2)]
        for process in processes:
            process.start()
        answers = dict(queue.get(timeout=60) for _ in processes)
        for process in processes:
            process.join(5)
            process.kill()
    if failures := [why for why in answers.values() if isinstance(why, str)]:
        raise Failed(next((why for why in failures if "onnection" not in why), failures[0]))
    return [_sum(answers[0][stage], answers[1][stage]) for stage in range(2)]


def _rank(rank, stages, batch, shapes, loss, folder, queue):
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2,
                                timeout=datetime.timedelta(seconds=10))
        dualpipe.set_p2p_tensor_shapes(shapes)
        dualpipe.set_p2p_tensor_dtype(torch.float32)
        modules = (stages()[rank], stages()[1 - rank])
        halves = [None if x is None else x.chunk(2)[rank] for x in batch]
        dual_pipe(modules).step(*halves, num_chunks=MICROBATCHES, criterion=loss)
        gradients = [
            {n: p.grad.numpy() for n, p in module.named_parameters() if p.grad is not None} for module in modules
        ]
        queue.put((rank, gradients if rank == 0 else gradients[::-1]))  # by stage
    except BaseException as error:
        first_line = str(error).strip().partition("\n")[0]
        queue.put((rank, type(error).__name__ + (f": {first_line}" if first_line else "")))
        queue.close()
        queue.join_thread()
        os._exit(1)  # the other rank notices


def _loss(y, *_):
    return (1 * y).sum()  # the gradient of y alone would be one element, expanded


def _sum(one, other):
    return {name: one[name] + other[name] for name in one}


def conclude(wrong, there, fine):
    """Prints the observation; exit code 1 when the deviation is present."""
    print(f"dualpipe {dualpipe.__version__}: {there if wrong else fine}")
    sys.exit(1 if wrong else 0)
