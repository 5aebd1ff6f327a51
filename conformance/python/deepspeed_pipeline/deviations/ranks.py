"""What the scripts of this folder share: DeepSpeed's PipelineEngine over gloo, without plumbline."""

import functools
import logging
import os
import sys

logging.disable(logging.ERROR)
ENGINE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ENGINE, os.path.dirname(ENGINE)]

from deepspeed_cpu import set_up  # before deepspeed  # isort: skip  # noqa: E402
import deepspeed  # noqa: E402
import deviation_ranks  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from deepspeed.accelerator import get_accelerator  # noqa: E402
from deepspeed.pipe import PipelineModule  # noqa: E402
from deviation_ranks import fail, fails  # noqa: E402, F401

conclude = functools.partial(deviation_ranks.conclude, f"deepspeed {deepspeed.__version__}")


def engine_of(layers, micro_batches=1, loss_fn=None, optimizer=None, lr_scheduler=None, config=(),
              module_class=PipelineModule, **options):
    """An engine with equally many layers on each rank. `loss_fn` is the mean of what the last layer returns, unless given."""
    loss_fn = loss_fn or (lambda y, _: y.mean())
    module = module_class(layers, num_stages=dist.get_world_size(), loss_fn=loss_fn, partition_method="uniform", **options)
    optimizer = optimizer or (lambda groups: torch.optim.SGD(groups, lr=1.0))
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": micro_batches, "gradient_clipping": 0.0,
              "steps_per_print": None,
              **dict(config)}  # fmt: skip
    groups = [{"params": list(module.parameters())}]
    return deepspeed.initialize(model=module, optimizer=optimizer(groups), lr_scheduler=lr_scheduler, config=config,
                                dist_init_required=False)[0]  # fmt: skip


def data(*inputs):
    """What train_batch() and eval_batch() read: a micro-batch for each of `inputs`, with labels that no loss here uses."""
    return iter([(x, torch.zeros(1)) for x in inputs])


def line(weight=1.0):
    """A layer y = weight * x."""
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.constant_(layer.weight, weight)
    return layer


class ScaledMean(torch.nn.Module):
    """A loss function with a parameter: the mean times `scale`, which is 1."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, y, _):
        return (self.scale * y).mean()


def run(ranks, body, expected=None, seconds=120):
    """[rank]: the result of body(rank). `expected` and `seconds`: as of deviation_ranks.run()."""
    return deviation_ranks.run(ranks, functools.partial(_rank, body), expected, seconds=seconds, message_seconds=20)


def _rank(body, rank):
    sys.stdout = open(os.devnull, "w")  # DeepSpeed prints how it cuts the model
    set_up(rank)
    type(get_accelerator()).Stream = property(lambda _: lambda **_: None)  # 0.19.2's checkpoints make one, and do not use it
    return body(rank)
