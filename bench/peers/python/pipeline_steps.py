"""The other engine's side of `plumbline bench peers step`: steps of its schedules, over gloo.

usage: pipeline_steps.py --engine NAME --ranks P --microbatches M --threads N --steps S --out DIR MODEL SCHEDULE...

bench/peers/pipeline_round.h describes the measurement and the files in DIR, filled_model.py what a MODEL is. steps_NAME.py has
a class Pipeline with step(), gradients() and drop_gradients(). Starts its ranks itself. Needs only torch and the engine.
exit: 0 done, 3 no such engine here.
"""

import argparse
import gc
import importlib
import json
import os
import signal
import sys
import time
import traceback

WARM_UP_STEPS = 3


def loss(output, target):
    return (output * target).sum()


def measure(engine, schedule, options):
    from filled_model import Shape, write_tensors

    pipeline = engine.Pipeline(schedule, Shape(options.model), options.microbatches, loss)
    seconds, processor = [], []
    # Live objects are exempt from collection; garbage of each step is collected between steps, outside the timed part.
    gc.collect()
    gc.freeze()
    gc.disable()
    for number in range(WARM_UP_STEPS + options.steps):
        pipeline.drop_gradients()
        gc.collect()
        dist.barrier()
        begin, processor_begin = time.perf_counter(), time.process_time()
        pipeline.step()
        if number >= WARM_UP_STEPS:
            seconds.append(time.perf_counter() - begin)
            processor.append(time.process_time() - processor_begin)
    gc.enable()
    gc.unfreeze()
    path = os.path.join(options.out, f'{schedule}.{dist.get_rank()}')
    write_tensors(path + '.safetensors', pipeline.gradients())
    with open(path + '.json', 'w') as file:
        json.dump({'seconds': seconds, 'processor_seconds': processor}, file)


def run_rank(engine, rank, options):
    torch.set_num_threads(options.threads)
    os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')
    store = 'file://' + os.path.join(os.path.abspath(options.out), 'rendezvous')
    dist.init_process_group('gloo', init_method=store, rank=rank, world_size=options.ranks)
    for schedule in options.schedules:
        measure(engine, schedule, options)
    dist.barrier()
    dist.destroy_process_group()


def forked(engine, rank, options):
    """The process of a rank: torch is imported once, before."""
    if child := os.fork():
        return child
    code = 1
    try:
        run_rank(engine, rank, options)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def options_of_command():
    parser = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1])
    for name in ('--ranks', '--microbatches', '--threads', '--steps'):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument('--engine', required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('model')
    parser.add_argument('schedules', nargs='+')
    return parser.parse_args()


def main(engine, options):
    children = {forked(engine, rank, options) for rank in range(options.ranks)}
    failed = False
    while children:
        child, status = os.wait()
        children.remove(child)
        if status != 0 and not failed:
            failed = True
            for other in children:
                os.kill(other, signal.SIGTERM)
    with open(os.path.join(options.out, 'version'), 'w') as file:
        file.write(engine.VERSION)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    given = options_of_command()
    try:
        import torch
        import torch.distributed as dist

        chosen = importlib.import_module(f'steps_{given.engine}')
    except ImportError as error:
        sys.stdout.write(f'{sys.executable} cannot import what {given.engine} needs ({error})')
        sys.exit(3)
    main(chosen, given)
