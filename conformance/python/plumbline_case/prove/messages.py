"""Terms travel beside the messages of torch.distributed, in files of a folder that all ranks see.

A sender describes a message before it leaves: its value, and a digest of its bytes. Message number n that a rank awaits from
another one on a channel is the n-th that was sent there. The receiver looks when it first reads the buffer: bytes that are
not those described, or not here yet, have no term.
"""

import contextlib
import itertools
import os
import pickle
from collections import defaultdict

import torch
import torch.distributed as dist
from torch.utils._pytree import tree_leaves

from ..torch_distributed.messages import carried_by
from .memory import Arrival, digest, own_bytes
from .terms import pieces_of


class Carrier:
    """A carrier of the messages of one rank (torch_distributed/messages.py)."""

    def __init__(self, folder, rank, memory):
        self._folder, self._rank, self._memory = folder, rank, memory
        self._sent, self._awaited = defaultdict(itertools.count), defaultdict(itertools.count)

    def isend(self, tensor, destination, channel, send):
        if tensor.is_contiguous() and tensor.numel():
            value = self._memory.read(tensor)
            content = value, pieces_of(self._memory.terms, value), digest(own_bytes(tensor))
            file = self._file(self._rank, destination, channel, next(self._sent[destination, channel]))
            with open(file + ".tmp", "wb") as stream:
                pickle.dump(content, stream)
            os.replace(file + ".tmp", file)
        return send(tensor)

    def irecv(self, tensor, source, channel, receive):
        if tensor.numel():
            file = self._file(source, self._rank, channel, next(self._awaited[source, channel]))
            self._memory.expect(tensor, lambda: self._arrival(file))
        return receive(tensor)

    def _file(self, source, destination, channel, number):
        group, tag = channel
        return os.path.join(self._folder, f"{source}-{destination}-{group}-{tag}-{number}")

    def _arrival(self, file):
        try:
            with open(file, "rb") as stream:
                value, pieces, content = pickle.load(stream)
        except FileNotFoundError:
            return None
        self._memory.terms.pieces |= pieces
        return Arrival(value, content)


@contextlib.contextmanager
def carried(carrier, memory):
    """Messages go through the carrier, and all_gather_object() takes the terms of tensors along."""
    original = dist.all_gather_object

    def all_gather_object(object_list, obj, group=None):
        own = [memory.read(x) for x in tensors_in(obj)]
        gathered = [None] * len(object_list)
        original(gathered, (obj, own, [pieces_of(memory.terms, value) for value in own]), group)
        for i, (given, values, pieces) in enumerate(gathered):
            object_list[i] = given
            for tensor, value, more in zip(tensors_in(given), values, pieces, strict=True):
                memory.terms.pieces |= more
                memory.define(tensor, value)

    dist.all_gather_object = all_gather_object
    try:
        with carried_by(carrier):
            yield
    finally:
        dist.all_gather_object = original


def tensors_in(obj):
    return [x for x in tree_leaves(obj) if isinstance(x, torch.Tensor)]
