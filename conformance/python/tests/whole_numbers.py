"""Tensors of whole numbers, for tests of plumbline_case.prove."""

import math

import torch


def drawn(generator, *sizes):
    """A tensor of whole numbers, so that every sum of them is exact."""
    return torch.tensor([float(generator.randint(-9, 9)) for _ in range(math.prod(sizes))]).reshape(sizes)
