"""BridgeCommunicator divides a batch over replicas unevenly if it has to, but tells all of them the first one's number of
rows: the last row of a replica with fewer is what its memory was before."""

import os
import sys

if "MALLOC_PERTURB_" not in os.environ:  # what is not received shows, every time
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_PERTURB_": "165"})

import torch  # noqa: E402
from ranks import bridge_of, conclude, control, on_cpu, run_bare  # noqa: E402


def body(rank, rows):
    with on_cpu():
        bridge = bridge_of([1, 2], {"s": 1, "b": 0, "h": 2})  # one replica of the first module, two of the second
        if rank == 0:
            bridge.send_forward(torch.arange(1.0, rows + 1).reshape(rows, 1, 1).expand(rows, 2, 2).contiguous())
            return None
        return bridge.recv_forward()[:, 0, 0].tolist()


control(run_bare(3, body, 4)[1:] == [[1.0, 2.0], [3.0, 4.0]])
there = run_bare(3, body, 3)[1:]
conclude(there != [[1.0, 2.0], [3.0]], f"the rows 1, 2 and 3 arrive at two replicas as {there[0]} and {there[1]}",
         "rows that do not divide evenly arrive")  # fmt: skip
