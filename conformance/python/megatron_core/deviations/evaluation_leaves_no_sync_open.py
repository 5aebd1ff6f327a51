"""forward_only enters the context of no_sync_func and never leaves it. If it is not a generator, which Python closes when
it collects it, a data parallelism of the user's stays as it was within: later steps do not synchronize replicas."""

import torch
import torch.distributed as dist
from ranks import DistributedDataParallelConfig, Model, conclude, control, microbatches, parallel_state, run
from megatron.core.distributed.data_parallel_base import _BaseDataParallel


class Replica(_BaseDataParallel):
    """Sums gradients over the replicas in the backward of a micro-batch, as PyTorch's DistributedDataParallel does."""

    def __init__(self, config, layer):
        super().__init__(config, layer)
        self.ddp_config, self.synchronizes = DistributedDataParallelConfig(), True
        for parameter in layer.parameters():
            parameter.main_grad = torch.zeros_like(parameter)
            parameter.register_post_accumulate_grad_hook(self.accumulate)

    def accumulate(self, parameter):
        parameter.main_grad += parameter.grad
        parameter.grad = None
        if self.synchronizes:
            dist.all_reduce(parameter.main_grad, group=parallel_state.get_data_parallel_group())

    def finish_grad_sync(self, force_all_reduce=False):
        """Nothing is left."""


class NoSync:
    def __init__(self, model):
        self.model = model

    def __enter__(self):
        self.before, self.model.synchronizes = self.model.synchronizes, False

    def __exit__(self, *_):
        self.model.synchronizes = self.before


def body(evaluates):
    model = Model(wrap=Replica)
    model.config.no_sync_func = lambda: NoSync(model.model[0])
    replica = parallel_state.get_data_parallel_rank()

    def loss(y):
        return (replica + 1) * y.sum(), {}

    if evaluates:
        with torch.no_grad():
            model.train(microbatches(2), loss, forward_only=True)
    model.train(microbatches(2), loss)
    return [gradient for gradient, _ in model.gradients()]


control(run(2, body, evaluates=False, replicas=2) == [[72.0]] * 4)  # 24 of one replica and 48 of the other
there = run(2, body, evaluates=True, replicas=2)
conclude(there != [[72.0]] * 4,
         f"after an evaluation two replicas keep the gradients {there[0][0]:g} and {there[1][0]:g}, not their sum",
         "after an evaluation replicas are synchronized")  # fmt: skip
