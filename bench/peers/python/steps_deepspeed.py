"""DeepSpeed's PipelineEngine for pipeline_steps.py: train_batch(), with an optimizer that changes nothing."""

from deepspeed_cpu import Unchanged, set_up  # before deepspeed  # isort: skip
import deepspeed
import torch
import torch.distributed as dist
from deepspeed.pipe import PipelineModule
from filled_model import LARGE, Layers, fill

VERSION = f'deepspeed {deepspeed.__version__} on torch {torch.__version__}'


class Pipeline:
    def __init__(self, name, shape, microbatches, loss):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        set_up(rank)
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
