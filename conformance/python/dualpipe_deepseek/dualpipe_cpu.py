"""What DualPipe 1.0.0 needs to run without a GPU: two things that name a device. Neither computes anything.

* DualPipe's constructor asserts that the parameters are on the device `torch.cuda.current_device()`, which raises in a
  build or on a machine without CUDA. Here it answers "cpu", while the constructor runs.
* `comm.build_from_tensor_shapes` makes the receive buffers with device="cuda". Here it makes them on the CPU: the same
  shapes, element type and requires_grad, uninitialised as DualPipe's are.

The transfers are torch.distributed's, over gloo instead of NCCL: DualPipe itself names no transport.
"""

from unittest import mock

import torch
from dualpipe import DualPipe, comm


def _receive_buffers():
    return [torch.empty(s, dtype=comm.TENSOR_DTYPE, device="cpu", requires_grad=True) for s in comm.TENSOR_SHAPES]


comm.build_from_tensor_shapes = _receive_buffers


def dual_pipe(modules, **options):
    with mock.patch.object(torch.cuda, "current_device", lambda: "cpu"):
        return DualPipe(modules, **options)
