"""A small transformer trained by torch.distributed.pipelining, or by one process: the lines marked
`# recorder` suffice for a comparison of the two (docs/recorder.md).

    python train_pipeline.py --record one                                          # one rank, micro-batches in turn
    torchrun --nproc-per-node 2 train_pipeline.py --record run --schedule 1F1B     # two ranks
    plumbline check run --against one

--fault injects a typical mistake of such scripts into the pipelined run. --perturb K repeats the one-rank run and moves
every value in the last place; `plumbline check` derives the rounding bounds from such runs (--whole-batch needs them).
"""

import argparse
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import PipelineScheduleMulti, get_schedule_class
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
from plumbline_recorder import Recorder, fill, fill_integers  # recorder 1

VOCABULARY, WIDTH, HEADS, LENGTH, LAYERS = 50, 32, 4, 8, 4


class ScaledGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 1.001


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.merge = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (HEADS, -1)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        scores = (q @ k.transpose(-1, -2) / (WIDTH / HEADS) ** 0.5).softmax(-1)
        x = x + self.merge((scores @ v).transpose(1, 2).flatten(2))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """The layers from `begin` to `end`, under their names in the whole model."""

    def __init__(self, begin, end, options):
        super().__init__()
        self.options = options
        self.embed = nn.Embedding(VOCABULARY, WIDTH) if begin == 0 else None
        self.layers = nn.ModuleDict({str(i): Block() for i in range(begin, end)})
        self.head = nn.Linear(WIDTH, VOCABULARY) if end == LAYERS else None

    def forward(self, x):
        x = x if self.embed is None else self.embed(x)
        for name, layer in self.layers.items():
            if self.options.checkpoint != 'no' and torch.is_grad_enabled():
                x = checkpoint(layer, x, use_reentrant=self.options.checkpoint == 'reentrant')
            else:
                x = layer(x)
            x = self.mistaken(x, name)
        return x if self.head is None else self.head(x)

    def mistaken(self, x, layer):
        """--fault: a mistake that a script may make after layer 2."""
        microbatch = self.options.microbatch
        if layer == '2' and self.options.fault == 'detach':
            return x.detach().requires_grad_()
        if layer == '2' and self.options.fault == 'forward' and microbatch == 1:
            return x * 1.001
        if layer == '2' and self.options.fault == 'backward' and microbatch == 3:
            return ScaledGradient.apply(x)
        return x


def tell_microbatch(stage, options):
    """For --fault: the micro-batch that the stage executes; None during shape inference."""
    run = stage.forward_one_chunk

    def forward_one_chunk(microbatch, *args, **kwargs):
        options.microbatch = microbatch
        return run(microbatch, *args, **kwargs)

    stage.forward_one_chunk = forward_one_chunk


def loss_of(options):
    def loss(output, target):
        value = nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())
        return value * 0 if options.fault == 'drop-loss' and options.microbatch == 2 else value

    return loss


def train(options):
    rank, ranks, count = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1)), options.microbatches
    if ranks == 1:
        options.fault = 'no'
    tokens, targets = (torch.empty(options.rows, LENGTH, dtype=torch.int64) for _ in range(2))
    for name, batch in (('tokens', tokens), ('targets', targets)):
        fill_integers(batch, options.seed, name, 0, VOCABULARY - 1)  # recorder 2
    dtype = getattr(torch, options.dtype)
    loss_fn, options.microbatch = loss_of(options), None

    if ranks > 1:
        if not dist.is_initialized():
            dist.init_process_group('gloo')
        kind = get_schedule_class(options.schedule)
        stages_here = options.stages_per_rank if issubclass(kind, PipelineScheduleMulti) else 1
        total = ranks * stages_here
        v_shaped = kind.__name__ in ('ScheduleZBVZeroBubble', 'ScheduleDualPipeV')
        numbers = (rank, total - 1 - rank) if v_shaped else range(rank, total, ranks)
        cuts = [LAYERS * i // total for i in range(total + 1)]
        modules = [Transformer(cuts[i], cuts[i + 1], options).to(dtype) for i in numbers]
        stages = [PipelineStage(module, i, total, torch.device('cpu')) for module, i in zip(modules, numbers)]
        for stage in stages:
            tell_microbatch(stage, options)
        schedule = kind(stages if issubclass(kind, PipelineScheduleMulti) else stages[0], count, loss_fn=loss_fn)
        watched, first, last = stages, 0 in numbers, total - 1 in numbers
    else:
        modules = watched = [Transformer(0, LAYERS, options).to(dtype)]
    for module in modules:
        fill(module, options.seed)  # recorder 3
    optimizer = torch.optim.SGD([p for module in modules for p in module.parameters()], lr=0.1)

    scale = 1.0 if ranks > 1 else 1 / count
    recorder = Recorder(options.record, microbatches=count, steps=options.steps, whole_batch=options.whole_batch,
                        loss_scale=scale, perturb=options.perturb)  # recorder 4 # fmt: skip
    for part in watched:
        recorder.watch(part)  # recorder 5

    for _ in range(options.steps):
        optimizer.zero_grad()
        if ranks > 1:
            losses = [] if last else None
            schedule.step(*([tokens] if first else []), target=targets if last else None, losses=losses)
        elif options.whole_batch:
            losses = loss_fn(modules[0](tokens), targets)
            losses.backward()
        else:
            losses = []
            for x, y in zip(tokens.tensor_split(count), targets.tensor_split(count)):
                losses.append(loss_fn(modules[0](x), y))
                (losses[-1] / count).backward()
        if options.fault == 'scale-grad' and rank == ranks - 1:
            for parameter in modules[0].parameters():
                parameter.grad *= 1.001
        if losses:
            recorder.losses(losses)  # recorder 6
        recorder.step_done()  # recorder 7
        optimizer.step()


def options_of(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--record', required=True, help='the folder of the recording')
    parser.add_argument('--schedule', default='1F1B', help='GPipe, 1F1B, Interleaved1F1B, InterleavedZeroBubble, ZBVZeroBubble, ...')
    parser.add_argument('--stages-per-rank', type=int, default=2, help='where the schedule takes several')
    parser.add_argument('--microbatches', type=int, default=4)
    parser.add_argument('--rows', type=int, default=8)
    parser.add_argument('--steps', type=int, default=1)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--dtype', default='float32')
    parser.add_argument('--checkpoint', default='no', choices=('no', 'non-reentrant', 'reentrant'))
    parser.add_argument('--whole-batch', action='store_true', help='one rank: the whole batch in one forward')
    parser.add_argument('--perturb', type=int, help='one rank: move every value in the last place, by this number')
    parser.add_argument('--fault', default='no', choices=('no', 'forward', 'backward', 'detach', 'drop-loss', 'scale-grad'))
    return parser.parse_args(words)


if __name__ == '__main__':
    torch.set_num_threads(1)
    train(options_of())
    if dist.is_initialized():
        dist.destroy_process_group()
