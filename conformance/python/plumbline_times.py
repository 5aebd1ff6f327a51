"""Records when a training script computes what, so that `plumbline bench gaps FOLDER` can say why each rank was idle.

Needs torch alone; copy this one file beside your script. In the script (as in docs/benchmarks.md):

    times = StepTimes('times')        # every rank: the same folder
    times.watch(stage)                # a stage of torch.distributed.pipelining, or a module: watch(module, number=1)
    ... forward and backward of one step ...
    times.step_done()

FOLDER/rank<R>.jsonl gets a line for each step: the computations of the rank, in the order of time, each with its begin and
its end in seconds. All ranks are on one host, whose clock they share. Nothing else is recorded, so a step takes as long as
without it; plumbline_recorder.py records values. The step is on CPU: a device computes later than its computations are
launched.

A stage says which micro-batch it computes, and which half of a backward. Of a module, the forwards of a step are counted; a
backward begins with the first gradient of the module's outputs, and ends with the call of backward() that it is in, so that
stages of one rank need a call each; of a backward in halves only the first is recorded, and the other one looks idle.
Evaluations are left out (module.eval()). A module inside a reentrant checkpoint computes without gradients: watch the module
around it.
Watch a stage where there is one: torch.distributed.pipelining may call its module once more before the first step.
"""

import json
import os
import time

import torch

SCHEMA = 'plumbline-times/1'


def _tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors_in(item)


class StepTimes:
    """The times of this rank. `rank` and `ranks` default to the environment's RANK and WORLD_SIZE, as torchrun sets them."""

    def __init__(self, folder, rank=None, ranks=None):
        self.rank = int(os.environ.get('RANK', 0)) if rank is None else rank
        self.ranks = int(os.environ.get('WORLD_SIZE', 1)) if ranks is None else ranks
        self._path = os.path.join(folder, f'rank{self.rank}.jsonl')
        self._step, self._modules = [], []
        os.makedirs(folder, exist_ok=True)
        self._write({'schema': SCHEMA, 'rank': self.rank, 'ranks': self.ranks}, 'w')

    def watch(self, stage, number=None):
        """Watches a stage of torch.distributed.pipelining, or the module of stage `number`. Returns `stage`."""
        if hasattr(stage, 'forward_one_chunk'):
            self._watch_stage(stage, stage.stage_index if number is None else number)
        elif number is None:
            raise ValueError('plumbline_times: watch(module) needs the number of its stage: watch(module, number=1)')
        else:
            self._modules.append(_Module(stage, number, self._add))
        return stage

    def step_done(self):
        """Ends a step: writes its computations."""
        self._write(sorted(self._step, key=lambda timed: timed[1:]), 'a')
        self._step.clear()
        for module in self._modules:
            module.forwards = 0

    def _write(self, line, mode):
        with open(self._path, mode, encoding='utf-8') as file:
            file.write(json.dumps(line) + '\n')

    def _add(self, stage, kind, microbatch, begin):
        self._step.append([f'{stage}{kind}{microbatch}', begin, time.monotonic()])

    def _watch_stage(self, stage, number):
        forward, backward = stage.forward_one_chunk, stage.backward_one_chunk

        def forward_one_chunk(microbatch, *args, **kwargs):
            begin = time.monotonic()
            out = forward(microbatch, *args, **kwargs)
            self._add(number, 'F', microbatch, begin)
            return out

        def backward_one_chunk(microbatch, loss=None, full_backward=True, *args, **kwargs):
            begin = time.monotonic()
            out = backward(microbatch, loss, full_backward, *args, **kwargs)
            self._add(number, 'B' if full_backward else 'I', microbatch, begin)
            return out

        stage.forward_one_chunk, stage.backward_one_chunk = forward_one_chunk, backward_one_chunk
        if weight := getattr(stage, 'backward_weight_one_chunk', None):

            def backward_weight_one_chunk(microbatch, *args, **kwargs):
                begin = time.monotonic()
                out = weight(microbatch, *args, **kwargs)
                self._add(number, 'W', microbatch, begin)
                return out

            stage.backward_weight_one_chunk = backward_weight_one_chunk


class _Module:
    """The forwards and backwards of one watched module."""

    def __init__(self, module, number, add):
        self.forwards, self._number, self._add = 0, number, add
        self._begin = None
        module.register_forward_pre_hook(self._before, prepend=True)
        module.register_forward_hook(self._after)

    def _before(self, module, args):
        self._begin = time.monotonic()

    def _after(self, module, args, out):
        tensors = list(_tensors_in(out))
        is_recomputed = torch._C._current_graph_task_id() != -1
        if not module.training or is_recomputed or any(tensor.is_meta for tensor in tensors):
            return
        microbatch, self.forwards = self.forwards, self.forwards + 1
        self._add(self._number, 'F', microbatch, self._begin)
        begun = []

        def backward(gradient):
            if not begun:
                begun.append(time.monotonic())
                end = lambda: self._add(self._number, 'B', microbatch, begun[0])
                torch.autograd.Variable._execution_engine.queue_callback(end)

        for tensor in tensors:
            if tensor.requires_grad:
                tensor.register_hook(backward)
