"""Whether each message of a case is received in that case. Otherwise the next case, which the same ranks run, would receive it in
place of its own, and fail for the fault of this one.

Counted are the messages of torch.distributed's process groups, by whatever function an engine sends them.
"""

import collections
import contextlib

ANY = "any rank"  # the source of a receive that names none
_net = collections.Counter()  # of this rank: {(source, destination): messages sent less messages received}


@contextlib.contextmanager
def counted():
    import torch.distributed as dist

    kind = dist.ProcessGroup
    send, receive, receive_any = kind.send, kind.recv, kind.recv_anysource

    def counted_send(group, tensors, peer, *more, **named):
        _net[dist.get_rank(), dist.get_global_rank(group, peer)] += 1
        return send(group, tensors, peer, *more, **named)

    def counted_receive(group, tensors, peer, *more, **named):
        _net[dist.get_global_rank(group, peer), dist.get_rank()] -= 1
        return receive(group, tensors, peer, *more, **named)

    def counted_receive_any(group, tensors, *more, **named):
        _net[ANY, dist.get_rank()] -= 1
        return receive_any(group, tensors, *more, **named)

    kind.send, kind.recv, kind.recv_anysource = counted_send, counted_receive, counted_receive_any
    try:
        yield
    finally:
        kind.send, kind.recv, kind.recv_anysource = send, receive, receive_any


def check():
    """Once every rank has called it, returns on each, or raises on each if a message is left over. Then it counts anew."""
    import torch
    import torch.distributed as dist

    ranks = range(dist.get_world_size())
    sources = [*ranks, ANY]
    net = torch.tensor([[_net[source, rank] for source in sources] for rank in ranks], device="cpu")
    _net.clear()
    dist.all_reduce(net)
    for rank, of_sources in zip(ranks, net.tolist(), strict=True):
        # A receive from any rank may have been of any message.
        found = {ANY: sum(of_sources)} if of_sources[-1] else dict(zip(sources, of_sources, strict=True))
        for source, count in found.items():
            if count:
                raise RuntimeError(_left_over(rank, source if source == ANY else f"rank {source}", count))


def _left_over(rank, source, count):
    messages = f"{abs(count)} message{'s' if abs(count) > 1 else ''}"
    if count > 0:
        return f"rank {rank} has not received {messages} from {source}, which the next case would receive"
    return f"rank {rank} still receives {messages} from {source}, which the next case would send"
