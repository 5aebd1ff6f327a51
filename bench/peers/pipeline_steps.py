"""Python's side of `plumbline bench peers step`: steps of schedules by torch.distributed.pipelining over gloo.

usage: pipeline_steps.py --ranks P --microbatches M --threads N --steps S --out DIR MODEL SCHEDULE...

bench/peers/pipeline_round.h describes the measurement and the files in DIR, filled_model.py what a MODEL is. Starts its
ranks itself. Needs only torch.
exit: 0 done, 3 no torch with torch.distributed.pipelining here.
"""

import argparse
import gc
import json
import os
import signal
import sys
import time
import traceback

try:
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, schedules
except ImportError as error:
    sys.stdout.write(f'{sys.executable} cannot import torch.distributed.pipelining ({error})')
    sys.exit(3)

from filled_model import LARGE, Layers, Shape, fill, write_tensors  # noqa: E402

CLASSES = {
    'gpipe': 'ScheduleGPipe',
    '1f1b': 'Schedule1F1B',
    'interleaved-1f1b': 'ScheduleInterleaved1F1B',
    'looped-bfs': 'ScheduleLoopedBFS',
    'interleaved-zero-bubble': 'ScheduleInterleavedZeroBubble',
    'zb-v': 'ScheduleZBVZeroBubble',
    'dualpipe-v': 'ScheduleDualPipeV',
}
ONE_STAGE, V_SHAPED = ('gpipe', '1f1b'), ('zb-v', 'dualpipe-v')
WARM_UP_STEPS = 3


def placed(schedule, rank, ranks):
    """The stages of this rank, and the number of all stages."""
    if schedule in ONE_STAGE:
        return [rank], ranks
    return [rank, 2 * ranks - 1 - rank if schedule in V_SHAPED else ranks + rank], 2 * ranks


def made_stage(shape, index, count):
    layers = shape.layers // count
    module = Layers(shape, index * layers, (index + 1) * layers)
    taken = torch.zeros(shape.sizes(), requires_grad=index > 0)
    made = module(taken).detach().requires_grad_()
    stage = PipelineStage(module, index, count, torch.device('cpu'), input_args=(taken,), output_args=(made,))
    if hasattr(stage, '_get_init_p2p_neighbors_ops'):
        # PyTorch 2.11 begins with a message to every neighbour, which gloo refuses where that is this rank.
        operations = stage._get_init_p2p_neighbors_ops
        stage._get_init_p2p_neighbors_ops = lambda: [op for op in operations() if op.peer != dist.get_rank()]
    return stage


def loss(output, target):
    return (output * target).sum()


def measure(schedule_name, shape, options, rank):
    own, count = placed(schedule_name, rank, options.ranks)
    stages = [made_stage(shape, index, count) for index in own]
    parameters = {name: p for stage in stages for name, p in stage.submod.named_parameters()}
    schedule = getattr(schedules, CLASSES[schedule_name])(
        stages[0] if schedule_name in ONE_STAGE else stages, options.microbatches, loss_fn=loss, scale_grads=False)
    batch = (fill(shape.sizes(options.microbatches), 0, LARGE, 0),) if 0 in own else ()
    target = {'target': fill(shape.sizes(options.microbatches), 1, LARGE, 0)} if count - 1 in own else {}
    seconds, processor = [], []
    # Live objects are exempt from collection; garbage of each step is collected between steps, outside the timed part.
    gc.collect()
    gc.freeze()
    gc.disable()
    for number in range(WARM_UP_STEPS + options.steps):
        for parameter in parameters.values():
            parameter.grad = None
        gc.collect()
        dist.barrier()
        begin, processor_begin = time.perf_counter(), time.process_time()
        schedule.step(*batch, **target, return_outputs=False)
        if number >= WARM_UP_STEPS:
            seconds.append(time.perf_counter() - begin)
            processor.append(time.process_time() - processor_begin)
    gc.enable()
    gc.unfreeze()
    path = os.path.join(options.out, f'{schedule_name}.{rank}')
    write_tensors(path + '.safetensors', {name: parameter.grad for name, parameter in parameters.items()})
    with open(path + '.json', 'w') as file:
        json.dump({'seconds': seconds, 'processor_seconds': processor}, file)


def run_rank(rank, options):
    torch.set_num_threads(options.threads)
    os.environ.setdefault('GLOO_SOCKET_IFNAME', 'lo')
    store = 'file://' + os.path.join(os.path.abspath(options.out), 'rendezvous')
    dist.init_process_group('gloo', init_method=store, rank=rank, world_size=options.ranks)
    for schedule in options.schedules:
        measure(schedule, Shape(options.model), options, rank)
    dist.barrier()
    dist.destroy_process_group()


def forked(rank, options):
    """The process of a rank: torch is imported once, before."""
    if child := os.fork():
        return child
    code = 1
    try:
        run_rank(rank, options)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1])
    for name in ('--ranks', '--microbatches', '--threads', '--steps'):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('model')
    parser.add_argument('schedules', nargs='+', choices=CLASSES)
    options = parser.parse_args()
    children = {forked(rank, options) for rank in range(options.ranks)}
    failed = False
    while children:
        child, status = os.wait()
        children.remove(child)
        if status != 0 and not failed:
            failed = True
            for other in children:
                os.kill(other, signal.SIGTERM)
    with open(os.path.join(options.out, 'torch'), 'w') as file:
        file.write(torch.__version__)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
