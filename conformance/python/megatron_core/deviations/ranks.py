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
from megatron.core.hyper_comm_grid import HyperCommGrid  # noqa: E402
from megatron.core.pipeline_parallel import get_forward_backward_func  # noqa: E402
from megatron.core.pipeline_parallel.bridge_communicator import BridgeCommunicator  # noqa: E402
from megatron.core.pipeline_parallel.multimodule_communicator import MultiModulePipelineCommunicator  # noqa: E402
from megatron.core.tensor_parallel import random  # noqa: E402
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
    """This rank's layers: one, or `chunks` of them, each in `wrap(config, layer)`, the DistributedDataParallel of
    Megatron-core unless given, for which `ddp` has options. Other words are for TransformerConfig."""

    def __init__(self, chunks=None, tied=False, wrap=None, ddp=None, **words):
        ranks = parallel_state.get_pipeline_model_parallel_world_size()
        self.config = TransformerConfig(
            num_layers=ranks * (chunks or 1), hidden_size=WIDTH, num_attention_heads=1, pipeline_model_parallel_size=ranks,
            virtual_pipeline_model_parallel_size=chunks, moe_token_dispatcher_type="alltoall",
            **{"pipeline_dtype": torch.float32, "finalize_model_grads_func": finalize_model_grads, **words})  # fmt: skip
        own = [chunk * ranks + parallel_state.get_pipeline_model_parallel_rank() for chunk in range(chunks or 1)]
        self.layers = [Layer(self.config, index, self.config.num_layers, tied) for index in own]
        options = ddp or {}
        wrap = wrap or (lambda *chunk: DistributedDataParallel(chunk[0], DistributedDataParallelConfig(**options), chunk[1]))
        with on_cpu():
            self.model = [wrap(self.config, layer) for layer in self.layers]

    def train(self, inputs, loss, forward_only=False, **words):
        """One step over micro-batches. Returns what loss(y) reports, on the last rank. Other words are for the schedule."""

        def forward(data, model):
            return model(next(data)), loss

        sizes = self.config.pipeline_model_parallel_size, self.config.virtual_pipeline_model_parallel_size
        schedule = get_forward_backward_func(*sizes)
        with on_cpu():
            return schedule(forward_step_func=forward, data_iterator=[iter(inputs) for _ in self.model], model=self.model,
                            num_microbatches=len(inputs), seq_length=inputs[0].shape[0], micro_batch_size=inputs[0].shape[1],
                            forward_only=forward_only, **words)  # fmt: skip

    def gradients(self):
        """[layer of this rank]: the gradients of weight and bias."""
        return [(layer.weight.main_grad.item(), layer.bias.main_grad.item()) for layer in self.layers]


def microbatches(count, sequence=1, batch=2):
    """Micro-batch m is full of m + 1."""
    return [torch.full((sequence, batch, WIDTH), float(m + 1)) for m in range(count)]


def without_gpu():
    """tensor_parallel.checkpoint() of Megatron-core saves and restores the state of a GPU's random numbers: not here."""
    random._get_cuda_rng_state, random._set_cuda_rng_state = lambda **_: None, lambda *_, **__: None


def checkpoint(function, x):
    without_gpu()
    return random.checkpoint(function, False, x)


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


# --- modules with several grids of ranks ------------------------------------------------------------------------------


class Grid(HyperCommGrid):
    """The data-parallel replicas of a module, one rank each."""

    def __init__(self, replicas, offset):
        super().__init__([1, 1, replicas], ["tp", "pp", "dp"], offset, backend="gloo")

    def _gen_rank_enum(self, dims):
        """All but one dimension have one rank: without einops."""
        ranks = list(range(self.rank_offset, self.rank_offset + self.size))
        return [ranks] if "dp" in dims else [[rank] for rank in ranks]


def grids(replicas):
    """The grids of modules with so many replicas, on the first ranks."""
    return [Grid(count, sum(replicas[:index])) for index, count in enumerate(replicas)]


def bridge_of(replicas, dim_mapping):
    """Between two modules with so many replicas."""
    return BridgeCommunicator(*grids(replicas), dim_mapping, torch.float32)


def communicator_of(modules, topology):
    """Of modules with a rank each."""
    config = TransformerConfig(num_layers=1, hidden_size=4, num_attention_heads=1, pipeline_dtype=torch.float32,
                               variable_seq_lengths=True, moe_token_dispatcher_type="alltoall")  # fmt: skip
    of_module = dict(zip(modules, grids([1] * len(modules)), strict=True))
    for grid in of_module.values():
        grid.create_pg("pp")
    return MultiModulePipelineCommunicator(of_module, topology, config, {"s": 0, "b": 1, "h": 2})


def run_bare(ranks, body, *arguments):
    """[rank]: the result of body(rank, ...), without Megatron-core's own groups."""

    def of_rank(rank):
        groups = torch.distributed.new_subgroups_by_enumeration
        torch.distributed.new_subgroups_by_enumeration = lambda enumeration, **_: groups(enumeration, backend="gloo")
        return body(rank, *arguments)

    return deviation_ranks.run(ranks, of_rank, seconds=90, message_seconds=20)
