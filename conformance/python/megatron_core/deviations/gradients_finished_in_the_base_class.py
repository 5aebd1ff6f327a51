"""finalize_model_grads() hands force_all_reduce to finish_grad_sync(), which the base class of data parallelism does not take:
neither does TorchFullyShardedDataParallel, which inherits it."""

from ranks import DistributedDataParallel, DistributedDataParallelConfig, Model, conclude, control, fails, microbatches, run
from megatron.core.distributed.data_parallel_base import _BaseDataParallel


def wrapped(kind, config, layer):
    if kind is DistributedDataParallel:
        return kind(config, DistributedDataParallelConfig(), layer)
    model = kind(config, layer)
    model.ddp_config = DistributedDataParallelConfig()
    return model


def body(kind):
    model = Model(wrap=lambda *words: wrapped(kind, *words))
    model.train(microbatches(2), lambda y: (y.sum(), {}))
    return [getattr(layer.weight, "main_grad", layer.weight.grad).item() for layer in model.layers]


control(run(2, body, DistributedDataParallel) == [[24.0]] * 2)
why = fails(run, 2, body, _BaseDataParallel, expected="force_all_reduce")
conclude(why, f"a chunk in the base class of data parallelism: {why}", "a chunk may be in the base class of data parallelism")
