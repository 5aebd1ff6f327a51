"""Megatron-core's schedules for pipeline_steps.py: forward and backward of a model in its own DistributedDataParallel."""

import importlib.metadata
from functools import partial

import torch
import torch.distributed as dist
from filled_model import LARGE, Layers, fill
from megatron.core import parallel_state
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads
from megatron.core.enums import ModelType
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.transformer.module import MegatronModule
from megatron.core.transformer.transformer_config import TransformerConfig
from megatron_cpu import on_cpu

STAGES_OF_A_RANK = {'1f1b': 1, 'interleaved-1f1b': 2}
VERSION = f'megatron-core {importlib.metadata.version("megatron-core")} on torch {torch.__version__}'


class Chunk(MegatronModule):
    """A stage. Values between stages have three dimensions; the first stage takes a micro-batch of the user's data."""

    def __init__(self, config, shape, index, count, batch):
        super().__init__(config)
        layers = shape.layers // count
        self.stage = Layers(shape, index * layers, (index + 1) * layers)
        self.model_type = ModelType.encoder_or_decoder
        self.pre_process, self.post_process = index == 0, index == count - 1
        self.share_embeddings_and_output_weights = False
        self._batch, self._received = batch, None

    def set_input_tensor(self, tensors):
        self._received = tensors[0]

    def forward(self, microbatch):
        return self.stage(self._batch[microbatch] if self.pre_process else self._received)


class Pipeline:
    def __init__(self, name, shape, microbatches, loss):
        rank, ranks, own = dist.get_rank(), dist.get_world_size(), STAGES_OF_A_RANK[name]
        self._sequence, self._rows, hidden = (1, *shape.sizes())[-3:]
        # The same numbers in the three dimensions in which Megatron-core sends them.
        sizes = (microbatches, self._sequence, self._rows, hidden)
        batch, self._target = (fill(shape.sizes(microbatches), stream, LARGE, 0).view(sizes) for stream in (0, 1))
        with on_cpu():
            if not parallel_state.model_parallel_is_initialized():
                parallel_state.initialize_model_parallel(pipeline_model_parallel_size=ranks, create_gloo_process_groups=False)
            config = TransformerConfig(
                num_layers=ranks * own, num_attention_heads=1, hidden_size=hidden, pipeline_model_parallel_size=ranks,
                virtual_pipeline_model_parallel_size=own if own > 1 else None, pipeline_dtype=torch.float32,
                # Batched messages of interleaved stages are exchanged on two ranks, and overlapped ones are freed too early.
                batch_p2p_comm=own == 1, overlap_p2p_comm=own > 1, deallocate_pipeline_outputs=own == 1,
                finalize_model_grads_func=finalize_model_grads)  # fmt: skip
            self._chunks = [Chunk(config, shape, i * ranks + rank, own * ranks, batch) for i in range(own)]
            self._model = [DistributedDataParallel(config, DistributedDataParallelConfig(), chunk) for chunk in self._chunks]
            self._run = get_forward_backward_func(ranks, config.virtual_pipeline_model_parallel_size)
        self._loss, self._microbatches = loss, microbatches

    def _forward(self, data, model):
        microbatch = next(data)
        return model(microbatch), partial(self._of_output, microbatch)

    def _of_output(self, microbatch, output):
        # Megatron-core divides by the number of micro-batches.
        return self._loss(output, self._target[microbatch]) * self._microbatches, {}

    def drop_gradients(self):
        for model in self._model:
            model.zero_grad_buffer()

    def step(self):
        data = [iter(range(self._microbatches)) for _ in self._model]
        with on_cpu():
            self._run(forward_step_func=self._forward, data_iterator=data, model=self._model, forward_only=False,
                      num_microbatches=self._microbatches, seq_length=self._sequence, micro_batch_size=self._rows)  # fmt: skip

    def gradients(self):
        return {name: p.main_grad for chunk in self._chunks for name, p in chunk.stage.named_parameters()}
