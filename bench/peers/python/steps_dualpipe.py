"""DeepSeek's DualPipe for pipeline_steps.py: two replicas in opposite directions, whose gradients its user sums: here by one
all-reduce of all of them between the two ranks that have the same stages, in the step."""

import importlib.metadata

import torch
import torch.distributed as dist
from dualpipe import set_p2p_tensor_dtype, set_p2p_tensor_shapes
from dualpipe_cpu import dual_pipe
from filled_model import LARGE, Layers, fill

VERSION = f'dualpipe {importlib.metadata.version("dualpipe")} on torch {torch.__version__}'


class Pipeline:
    def __init__(self, name, shape, microbatches, loss):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        layers = shape.layers // ranks
        self._stages = {stage: Layers(shape, stage * layers, (stage + 1) * layers) for stage in (rank, ranks - 1 - rank)}
        self._engine = dual_pipe(tuple(self._stages.values()), batch_dim=0)
        set_p2p_tensor_shapes([shape.sizes()])
        set_p2p_tensor_dtype(torch.float32)
        pairs = [dist.new_group([low, ranks - 1 - low]) for low in range(ranks // 2)]
        self._pair = pairs[min(rank, ranks - 1 - rank)]
        # The first half of the micro-batches goes from rank 0 to the last one, the second half the other way.
        feeds, ends = {0: (0, 1), ranks - 1: (1, 0)}.get(rank, (None, None))
        batch, target = (fill(shape.sizes(microbatches), stream, LARGE, 0).chunk(2) for stream in (0, 1))
        self._batch = () if feeds is None else (batch[feeds],)
        self._labels = [] if ends is None else [target[ends]]
        self._microbatches, self._loss = microbatches, loss

    def _parameters(self):
        """Those of both stages, in an order that both ranks have."""
        return {name: p for stage in sorted(self._stages) for name, p in self._stages[stage].named_parameters()}

    def drop_gradients(self):
        for parameter in self._parameters().values():
            parameter.grad = None

    def step(self):
        self._engine.step(*self._batch, num_chunks=self._microbatches, criterion=self._loss, labels=self._labels)
        gradients = [parameter.grad for parameter in self._parameters().values()]
        joined = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(joined, group=self._pair)
        for gradient, part in zip(gradients, joined.split([gradient.numel() for gradient in gradients])):
            gradient.copy_(part.view_as(gradient))

    def gradients(self):
        return {name: parameter.grad for name, parameter in self._parameters().items()}
