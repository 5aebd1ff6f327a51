"""torch.distributed's messages between two ranks, in the hands of a carrier: wire.py has a bad one, plumbline_case.prove one
that takes terms along.

A carrier has isend(tensor, destination, channel, send) and irecv(tensor, source, channel, receive), which return a Work, and
flush(), which returns when every message has left.
Peers are global ranks; messages between two ranks on one channel arrive in their order. send(tensor) and receive(tensor)
are the functions of torch.distributed.
"""

import contextlib

_carrier = [None]  # of this process


@contextlib.contextmanager
def carried_by(carrier):
    before, _carrier[0] = _carrier[0], carrier
    try:
        yield
    finally:
        _carrier[0] = before


def flush():
    """Returns when every message has left that a carrier with flush() holds back."""
    if _carrier[0] is not None:
        _carrier[0].flush()


def install():
    """Replaces torch.distributed's functions; to be called before an engine is imported, which may import them by name.
    batch_isend_irecv, send and recv consist of these two. Nothing changes without a carrier."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d as c10d

    isend, irecv = c10d.isend, c10d.irecv

    def whereabouts(peer, group, tag, peer_in_group):
        group = group or dist.group.WORLD
        peer = peer if peer_in_group is None else dist.get_global_rank(group, peer_in_group)
        return peer, (group.group_name, tag)

    def carried_isend(tensor, dst=None, group=None, tag=0, group_dst=None):
        def send(payload):
            return isend(payload, dst, group, tag, group_dst)

        if _carrier[0] is None:
            return send(tensor)
        return _carrier[0].isend(tensor, *whereabouts(dst, group, tag, group_dst), send)

    def carried_irecv(tensor, src=None, group=None, tag=0, group_src=None):
        def receive(own):
            return irecv(own, src, group, tag, group_src)

        if _carrier[0] is None:
            return receive(tensor)
        return _carrier[0].irecv(tensor, *whereabouts(src, group, tag, group_src), receive)

    for module in (c10d, dist):
        module.isend, module.irecv = carried_isend, carried_irecv
