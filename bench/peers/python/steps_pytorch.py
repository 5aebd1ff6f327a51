"""torch.distributed.pipelining for pipeline_steps.py: its own schedule classes, and PipelineStage with given shapes."""

import torch
import torch.distributed as dist
from filled_model import LARGE, Layers, fill
from torch.distributed.pipelining import PipelineStage, schedules

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

VERSION = f'torch {torch.__version__}'


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


class Pipeline:
    def __init__(self, name, shape, microbatches, loss):
        own, count = placed(name, dist.get_rank(), dist.get_world_size())
        stages = [made_stage(shape, index, count) for index in own]
        self._parameters = {name: p for stage in stages for name, p in stage.submod.named_parameters()}
        kind = getattr(schedules, CLASSES[name])
        self._schedule = kind(stages[0] if name in ONE_STAGE else stages, microbatches, loss_fn=loss, scale_grads=False)
        self._batch = (fill(shape.sizes(microbatches), 0, LARGE, 0),) if 0 in own else ()
        self._target = {'target': fill(shape.sizes(microbatches), 1, LARGE, 0)} if count - 1 in own else {}

    def drop_gradients(self):
        for parameter in self._parameters.values():
            parameter.grad = None

    def step(self):
        self._schedule.step(*self._batch, **self._target, return_outputs=False)

    def gradients(self):
        return {name: parameter.grad for name, parameter in self._parameters.items()}
