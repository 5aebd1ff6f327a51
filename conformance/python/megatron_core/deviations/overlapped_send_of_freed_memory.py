"""Interleaved 1F1B with overlap_p2p_comm and deallocate_pipeline_outputs, which Megatron-LM always sets: an output is
freed while it is being sent, and a next rank that is late receives what is in that memory by then. (Megatron-LM pull
request 4047)"""

import os
import sys
import time

if "MALLOC_PERTURB_" not in os.environ:  # freed memory shows, every time
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_PERTURB_": "165"})

import torch.distributed as dist
from ranks import Model, conclude, control, microbatches, run


def body(deallocate):
    model = Model(chunks=2, batch_p2p_comm=False, overlap_p2p_comm=True, deallocate_pipeline_outputs=deallocate)
    for layer in model.layers:
        layer.before = lambda: time.sleep(0.05 * dist.get_rank())
    reports = model.train(microbatches(8, batch=64), lambda y: (y.sum(), {"loss": y.sum().item()}))
    return [report["loss"] / 512 for report in reports]


right = [float(m + 1) for m in range(8)]
control(run(2, body, deallocate=False)[1] == right)
there = run(2, body, deallocate=True)[1]
wrong = [m for m in range(8) if there[m] != right[m]]
example = (wrong or [0])[-1]
conclude(bool(wrong), f"of 8 micro-batches {len(wrong)} arrive as other numbers: {there[example]:g} for {right[example]:g}",
         "outputs that are freed after they are sent arrive")
