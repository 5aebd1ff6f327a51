"""Ranks on this machine for the scripts in this folder: PyTorch over gloo, without plumbline."""

import datetime
import logging
import multiprocessing
import os
import sys
import tempfile

import torch
import torch.distributed as dist

logging.disable(logging.ERROR)
CPU = torch.device("cpu")


def _rank(rank, ranks, body, folder, queue):
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
                                timeout=datetime.timedelta(seconds=20))
        queue.put((rank, body(rank), None))
    except BaseException as error:
        while error.__cause__ is not None:
            error = error.__cause__
        queue.put((rank, None, f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"))
        queue.close()
        queue.join_thread()
        os._exit(1)  # the other ranks notice


def run(ranks, body):
    """[rank]: the result of body(rank). A failure of a rank is the deviation: prints the reason, and exits."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        queue = context.Queue()
        processes = [context.Process(target=_rank, args=(r, ranks, body, folder, queue)) for r in range(ranks)]
        for process in processes:
            process.start()
        answers = sorted(queue.get(timeout=60) for _ in range(ranks))
        for process in processes:
            process.join(5)
            process.kill()
    if failures := [why for _, _, why in answers if why]:
        # The first failure that is not caused by the end of another rank.
        conclude(True, next((why for why in failures if "onnection" not in why), failures[0]), "")
    return [answer for _, answer, _ in answers]


def fed(rank, batch, target, last=1):
    """The arguments of step() and eval(): the batch on the first rank, the target on the last."""
    return [batch] if rank == 0 else [], {"target": target} if rank == last else {}


def without_messages_to_itself(stage):
    """2.11 begins with a message to each neighbour, also on the same rank, which gloo rejects: v_schedule_over_gloo.py."""
    if operations := getattr(stage, "_get_init_p2p_neighbors_ops", None):
        stage._get_init_p2p_neighbors_ops = lambda: [op for op in operations() if op.group_peer != dist.get_rank()]
    return stage


def conclude(wrong, there, fine):
    """Prints the observation; exit code 1 when the deviation is present."""
    print(f"torch {torch.__version__}: {there if wrong else fine}")
    sys.exit(1 if wrong else 0)

