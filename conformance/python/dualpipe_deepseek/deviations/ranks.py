"""What the scripts of this folder share: DualPipe on two ranks over gloo, without plumbline."""

import functools
import os
import sys

ENGINE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [ENGINE, os.path.dirname(ENGINE)]

import deviation_ranks  # noqa: E402
import dualpipe  # noqa: E402
import torch  # noqa: E402
from deviation_ranks import control, fails, run  # noqa: E402, F401
from dualpipe_cpu import dual_pipe  # noqa: E402, F401

MICROBATCHES = 4  # two in each direction
conclude = functools.partial(deviation_ranks.conclude, f"dualpipe {dualpipe.__version__}")


def train(stages, batch, shapes, loss=None, expected=None):
    """[stage]: {parameter: gradient} after a step over two ranks, summed over the two replicas. `stages()` makes the two
    stages, `batch` has the model's inputs, `shapes` are those between the stages; `loss` is the sum of the first output,
    unless given. `expected`: as of deviation_ranks.run()."""
    one, other = run(2, lambda rank: _step(rank, stages, batch, shapes, loss or _loss), expected)
    return [{name: one[stage][name] + other[stage][name] for name in one[stage]} for stage in range(2)]


def _step(rank, stages, batch, shapes, loss):
    """[stage]: the gradients of this rank's replica."""
    dualpipe.set_p2p_tensor_shapes(shapes)
    dualpipe.set_p2p_tensor_dtype(torch.float32)
    modules = (stages()[rank], stages()[1 - rank])
    halves = [None if x is None else x.chunk(2)[rank] for x in batch]
    dual_pipe(modules).step(*halves, num_chunks=MICROBATCHES, criterion=loss)
    gradients = [{n: p.grad.numpy() for n, p in module.named_parameters() if p.grad is not None} for module in modules]
    return gradients if rank == 0 else gradients[::-1]


def _loss(y, *_):
    return (1 * y).sum()  # the gradient of y alone would be one element, expanded
