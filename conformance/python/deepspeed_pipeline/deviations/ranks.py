"""Ranks on this machine for the scripts in this folder: DeepSpeed's PipelineEngine over gloo, without plumbline."""

import datetime
import logging
import multiprocessing
import os
import sys
import tempfile
import time
from queue import Empty

os.environ["DS_ACCELERATOR"] = "cpu"
logging.disable(logging.ERROR)

import deepspeed  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from deepspeed.pipe import PipelineModule  # noqa: E402

deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False  # would be compiled, 50 s, for inference only


def engine_of(layers, micro_batches=1, loss_fn=None, optimizer=None, config=(), **options):
    """An engine with one layer on each rank. `loss_fn` is the mean of what the last layer returns, unless given."""
    loss_fn = loss_fn or (lambda y, _: y.mean())
    module = PipelineModule(layers, num_stages=dist.get_world_size(), loss_fn=loss_fn, partition_method="uniform", **options)
    optimizer = optimizer or (lambda groups: torch.optim.SGD(groups, lr=1.0))
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": micro_batches, "gradient_clipping": 0.0,
              "steps_per_print": None,
              **dict(config)}  # fmt: skip
    groups = [{"params": list(module.parameters())}]
    return deepspeed.initialize(model=module, optimizer=optimizer(groups), config=config, dist_init_required=False)[0]


def data(*inputs):
    """What train_batch() and eval_batch() read: a micro-batch for each of `inputs`, with labels that no loss here uses."""
    return iter([(x, torch.zeros(1)) for x in inputs])


def line(weight=1.0):
    """A layer y = weight * x."""
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, weight)
    return layer


def _rank(rank, ranks, body, folder, queue):
    torch.set_num_threads(1)
    os.environ["LOCAL_RANK"] = str(rank)
    sys.stdout = open(os.devnull, "w")  # DeepSpeed prints how it cuts the model
    try:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
                                timeout=datetime.timedelta(seconds=20))  # fmt: skip
        deepspeed.init_distributed("gloo", verbose=False)
        queue.put((rank, body(rank), None))
    except BaseException as error:
        queue.put((rank, None, f"{type(error).__name__}: {(str(error).strip() or _place(error)).splitlines()[0]}"))
        queue.close()
        queue.join_thread()
        os._exit(1)  # the other ranks notice


def _place(error):
    """The function in which an error without words was raised."""
    trace = error.__traceback__
    while trace.tb_next:
        trace = trace.tb_next
    return f"in {trace.tb_frame.f_code.co_name}"


def _answers(queue, processes):
    """What each rank put into the queue; for one that a signal ended, which."""
    answers, deadline = {}, time.monotonic() + 120
    while len(answers) < len(processes) and time.monotonic() < deadline:
        try:
            answer = queue.get(timeout=1)
            answers[answer[0]] = answer
        except Empty:
            dead = [(r, p.exitcode) for r, p in enumerate(processes) if r not in answers and (p.exitcode or 0) < 0]
            answers |= {r: (r, None, f"killed by signal {-code}") for r, code in dead}
    return answers.values()


def results(ranks, body):
    """([rank]: the result of body(rank), [] if one failed; the first failure that another rank did not cause, or None)."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        queue = context.Queue()
        processes = [context.Process(target=_rank, args=(r, ranks, body, folder, queue)) for r in range(ranks)]
        for process in processes:
            process.start()
        answers = sorted(_answers(queue, processes))
        for process in processes:
            process.join(5)
            process.kill()
    failures = [why for _, _, why in answers if why]
    first = next((why for why in failures if "onnection" not in why and "imed out" not in why), (failures or [None])[0])
    return ([] if failures else [answer for _, answer, _ in answers]), first


def run(ranks, body):
    """[rank]: the result of body(rank). It must not fail."""
    answers, failure = results(ranks, body)
    if failure:
        raise SystemExit(f"this failure is not the one that the script is about: {failure}")
    return answers


def fails(ranks, body, with_words):
    """The failure of body(rank), None without one. Any but the one that contains `with_words` ends the script."""
    _, failure = results(ranks, body)
    if failure and with_words not in failure:
        raise SystemExit(f"this failure is not the one that the script is about: {failure}")
    return failure


def conclude(wrong, there, fine):
    """Prints the observation; exit code 1 when the deviation is present."""
    print(f"deepspeed {deepspeed.__version__}: {there if wrong else fine}")
    sys.exit(1 if wrong else 0)
