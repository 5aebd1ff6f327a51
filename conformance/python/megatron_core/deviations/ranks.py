"""What the scripts of this folder share: Megatron-core over gloo, without plumbline. A script trains a small model twice
or more, once in a way that works: the control."""

import functools
import importlib.metadata
import logging
import os
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.ERROR)
ENGINE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ENGINE, os.path.dirname(ENGINE)]

import deviation_ranks  # noqa: E402
import torch  # noqa: E402
from deviation_ranks import Failed, control, fails  # noqa: E402, F401
from megatron_cpu import on_cpu  # noqa: E402
from megatron.core import parallel_state  # noqa: E402
from megatron.core.distributed import DistributedDataParallel, DistributedDataParallelConfig, finalize_model_grads  # noqa: E402
from megatron.core.enums import ModelType  # noqa: E402
from megatron.core.pipeline_parallel import get_forward_backward_func  # noqa: E402
from megatron.core.transformer.module import MegatronModule  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402

WIDTH = 8
conclude = functools.partial(deviation_ranks.conclude, f"megatron-core {importlib.metadata.version('megatron-core')}")


class Layer(MegatronModule):
    """x * weight + bias, numbers; the first and the last layer may share their weight."""

    def __init__(self, config, index, layers, tied):
        super().__init__(config)
        self.model_type = ModelType.encoder_or_decoder
        self.pre_process, self.post_process = index == 0, index == layers - 1
        self.share_embeddings_and_output_weights = tied
        self.weight, self.bias = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.zeros(1))
        self.before, self.after = lambda: None, lambda y: y  # called before each forward, and with its result

    def shared_embedding_or_output_weight(self):
        return self.weight

    def set_input_tensor(self, tensors):
        self.received = tensors[0]

    def forward(self, x):
        self.before()
        return self.after((x if self.pre_process else self.received) * self.weight + self.bias)


class Model:
    """This rank's layers: one, or `chunks` of them. Other words are for TransformerConfig."""

    def __init__(self, chunks=None, tied=False, **words):
        ranks = parallel_state.get_pipeline_model_parallel_world_size()
        self.config = TransformerConfig(
            num_layers=ranks * (chunks or 1), hidden_size=WIDTH, num_attention_heads=1, pipeline_model_parallel_size=ranks,
            virtual_pipeline_model_parallel_size=chunks, pipeline_dtype=torch.float32, moe_token_dispatcher_type="alltoall",
            **{"finalize_model_grads_func": finalize_model_grads, **words})  # fmt: skip
        own = [chunk * ranks + parallel_state.get_pipeline_model_parallel_rank() for chunk in range(chunks or 1)]
        self.layers = [Layer(self.config, index, self.config.num_layers, tied) for index in own]
        with on_cpu():
            self.model = [DistributedDataParallel(self.config, DistributedDataParallelConfig(), layer) for layer in self.layers]

    def train(self, inputs, loss, forward_only=False):
        """One step over micro-batches. Returns what loss(y) reports, on the last rank."""

        def forward(data, model):
            return model(next(data)), loss

        sizes = self.config.pipeline_model_parallel_size, self.config.virtual_pipeline_model_parallel_size
        schedule = get_forward_backward_func(*sizes)
        with on_cpu():
            return schedule(forward_step_func=forward, data_iterator=[iter(inputs) for _ in self.model], model=self.model,
                            num_microbatches=len(inputs), seq_length=inputs[0].shape[0], micro_batch_size=inputs[0].shape[1],
                            forward_only=forward_only)  # fmt: skip

    def gradients(self):
        """[layer of this rank]: the gradients of weight and bias."""
        return [(layer.weight.main_grad.item(), layer.bias.main_grad.item()) for layer in self.layers]


def microbatches(count, sequence=1, batch=2):
    """Micro-batch m is full of m + 1."""
    return [torch.full((sequence, batch, WIDTH), float(m + 1)) for m in range(count)]


def run(ranks, body, *arguments, replicas=1, expected=None, **words):
    """[rank]: the result of body(...), with `ranks` ranks in each replica; the replicas of a rank follow one another.
    `expected`: as of deviation_ranks.run()."""

    def of_rank(_):
        with on_cpu():
            parallel_state.initialize_model_parallel(
                pipeline_model_parallel_size=ranks, distributed_timeout_minutes=20 / 60, create_gloo_process_groups=False
            )
        return body(*arguments, **words)

    return deviation_ranks.run(ranks * replicas, of_rank, expected, seconds=90, message_seconds=20)
