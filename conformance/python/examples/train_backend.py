"""The training of train_pipeline.py as a backend of plumbline: it runs only its custom model, and is compared with its
run on one rank. conformance/INTERPRETING.md, "Custom models", is the contract.

    plumbline run --backend conformance/python/examples/train_backend.toml --ranks 2

usage: train_backend.py describe | plan --job J | run --job J --out D        (run: under torchrun, one rank of it)

Other arguments are passed to train_pipeline.py: `--fault=backward`, for example, injects one of its faults.
"""

import argparse
import json
import os
import sys

LAYERS = 4
STAGES_PER_RANK = {'GPipe': 1, '1F1B': 1, 'Interleaved1F1B': 2, 'InterleavedZeroBubble': 2}
MODELS = {'transformer': [], 'transformer-checkpointed': ['--checkpoint', 'non-reentrant']}


def describe():
    return {'protocol': 1, 'name': 'train_pipeline.py', 'version': '1', 'schedules': list(STAGES_PER_RANK), 'level': 'own',
            'models': list(MODELS), 'delivers': ['forward', 'loss', 'backward', 'grad']}  # fmt: skip


def why_not(schedule, ranks, microbatches):
    """The reason why it cannot be run, or None."""
    if schedule == 'one-rank':
        return None
    if (stages := ranks * STAGES_PER_RANK[schedule]) > LAYERS:
        return f'{stages} stages, and the model has {LAYERS} layers'
    return f'{microbatches} micro-batches, fewer than {ranks} ranks' if microbatches < ranks else None


def plan(job):
    for one in job['cases']:
        reason = why_not(one['schedule'], job['ranks'], job.get('microbatches', LAYERS))
        yield {'id': one['id'], 'schedule': one['schedule'], 'supported': not reason} | ({'why': reason} if reason else {})


def run(job, out, more):
    import torch
    import torch.distributed as dist

    from train_pipeline import options_of, train

    torch.set_num_threads(1)
    rank, microbatches = int(os.environ.get('RANK', 0)), job.get('microbatches', LAYERS)

    def tell(event):
        if rank == 0:
            print(f'@plumbline case {event}', flush=True)

    for number, one in enumerate(job['cases']):
        tell(f'{number} begins')
        words = ['--record', os.path.dirname(os.path.join(out, one['results'])), '--seed', str(job['seed']),
                 '--microbatches', str(microbatches), '--rows', str(2 * microbatches), *MODELS[one['id']], *more]  # fmt: skip
        if one['schedule'] != 'one-rank':
            words += ['--schedule', one['schedule']]
        train(options_of(words))
        if dist.is_initialized():
            dist.barrier()  # every rank has written
        tell(f'{number} done')
    if dist.is_initialized():
        dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(prog='train_backend.py', allow_abbrev=False)
    parser.add_argument('verb', choices=('describe', 'plan', 'run'))
    parser.add_argument('--job', help='the job file')
    parser.add_argument('--out', help='where recordings go')
    options, more = parser.parse_known_args()
    if options.verb == 'describe':
        return print(json.dumps(describe()))
    with open(options.job, encoding='utf-8') as file:
        job = json.load(file)
    if options.verb == 'plan':
        return print(json.dumps(list(plan(job))))
    return run(job, options.out, more)


if __name__ == '__main__':
    sys.exit(main())
