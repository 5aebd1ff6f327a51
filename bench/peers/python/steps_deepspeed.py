"""DeepSpeed's PipelineEngine for pipeline_steps.py: train_batch(), with an optimizer that changes nothing."""

import logging
import os

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.pipe import PipelineModule
from filled_model import LARGE, Layers, fill

CLASSES = {'1f1b': 'DeepSpeed has no other schedule'}
VERSION = f'deepspeed {deepspeed.__version__} on torch {torch.__version__}'


class Unchanged(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        pass


def set_up():
    """What DeepSpeed's launcher does, for a process group that exists."""
    os.environ['LOCAL_RANK'] = str(dist.get_rank())
    # It would compile a collective for inference, which no training uses.
    deepspeed.ops.__compatible_ops__['deepspeed_shm_comm'] = False
    deepspeed.utils.logger.setLevel(logging.WARNING)  # it logs its whole configuration
    deepspeed.init_distributed('gloo', verbose=False)


class Pipeline:
    def __init__(self, name, shape, microbatches, loss):
        set_up()
        rank, ranks = dist.get_rank(), dist.get_world_size()
        layers = shape.layers // ranks
        stage = Layers(shape, rank * layers, (rank + 1) * layers)
        # One layer for each stage; DeepSpeed builds and runs those of this rank only.
        module = PipelineModule(
            [stage if i == rank else torch.nn.Identity() for i in range(ranks)], num_stages=ranks,
            loss_fn=lambda output, target: loss(output, target) * microbatches,  # DeepSpeed divides by their number
            partition_method='uniform')  # fmt: skip
        config = {'train_micro_batch_size_per_gpu': 1, 'gradient_accumulation_steps': microbatches, 'steps_per_print': None,
                  'gradient_clipping': 0.0}  # fmt: skip
        optimizer = Unchanged([{'params': list(module.parameters())}])
        self._engine, *_ = deepspeed.initialize(model=module, optimizer=optimizer, config=config, dist_init_required=False)
        batch, target = (fill(shape.sizes(microbatches), stream, LARGE, 0) for stream in (0, 1))
        self._data = list(zip(batch.chunk(microbatches), target.chunk(microbatches), strict=True))
        self._stage, self._gradients = stage, {}
        optimizer.register_step_pre_hook(self._keep)

    def _keep(self, *_):
        """train_batch() drops the gradients after the optimizer's step."""
        self._gradients = {name: parameter.grad for name, parameter in self._stage.named_parameters()}

    def drop_gradients(self):
        self._gradients = {}

    def step(self):
        self._engine.train_batch(iter(self._data))

    def gradients(self):
        return self._gradients
