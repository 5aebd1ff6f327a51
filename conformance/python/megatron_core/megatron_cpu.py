"""Megatron-core on a CPU: what it asks of a GPU, answered by the CPU.

Megatron-core names "cuda" as the device of its own small tensors (receive buffers, numbers of tokens, norms), and waits
for the device after a batch of messages. Nothing here computes anything: the same tensors are made elsewhere, and on a CPU
there is nothing to wait for.
"""

import contextlib

import torch
from torch.overrides import TorchFunctionMode


class _OnCpu(TorchFunctionMode):
    """torch.zeros(..., device="cuda") and the like make their tensor on the CPU."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if str(kwargs.get("device")).startswith("cuda"):
            kwargs["device"] = "cpu"
        return function(*args, **kwargs)


@contextlib.contextmanager
def on_cpu():
    """Calls of Megatron-core belong in this context."""
    # The device of receive buffers.
    current_device, torch.cuda.current_device = torch.cuda.current_device, lambda: torch.device("cpu")
    # Called after batched messages, because of old versions of PyTorch. gloo's wait() has waited for all of it.
    synchronize, torch.cuda.synchronize = torch.cuda.synchronize, lambda device=None: None
    try:
        with _OnCpu():
            yield
    finally:
        torch.cuda.current_device, torch.cuda.synchronize = current_device, synchronize
