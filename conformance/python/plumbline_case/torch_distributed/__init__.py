"""For engines that run on torch.distributed: ranks as processes over gloo. Importing it does not import torch, which takes
seconds."""

from .gloo import GlooBackend

__all__ = ["GlooBackend"]
