"""BridgeCommunicator joins what several replicas send along the first dimension, but divides along that of the batch, which
dim_mapping gives (the second one, as everywhere in Megatron-core): activations from the second micro-batch on, and
gradients."""

import torch
from ranks import bridge_of, conclude, control, on_cpu, run_bare


def body(rank, mapping):
    with on_cpu():
        bridge = bridge_of([2, 1], mapping)  # two replicas of the first module, one of the second
        if rank < 2:
            own = torch.full([2, 2, 1], float(rank + 1))
            bridge.send_forward(own)
            bridge.send_forward_recv_backward(own)
            bridge.recv_backward()
            return None
        first = bridge.recv_forward()
        second = bridge.send_backward_recv_forward(torch.ones_like(first))
        bridge.send_backward(torch.ones_like(first))
        return list(first.shape), list(second.shape)


control(run_bare(3, body, {"s": 1, "b": 0, "h": 2})[2] == ([4, 2, 1], [4, 2, 1]))
first, second = run_bare(3, body, {"s": 0, "b": 1, "h": 2})[2]
control(first == [2, 4, 1])
conclude(second != first,
         f"two replicas send 2 rows each, of length 2: the first micro-batch is {first}, the second one {second}",
         "all micro-batches are joined along the batch")  # fmt: skip
