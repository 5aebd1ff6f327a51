"""deallocate_pipeline_outputs, which Megatron-LM always sets, and a loss function that reports the loss itself: the last stage
of 1F1B, which sends nothing, frees its loss as if it were an output, and the report is whatever is in new memory."""

import os
import sys

if "MALLOC_PERTURB_" not in os.environ:  # new memory shows, every time
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_PERTURB_": "165"})

from ranks import Model, conclude, control, microbatches, run  # noqa: E402


def body(deallocate):
    def loss(y):
        total = y.sum()
        return total, {"loss": total}

    # One micro-batch, since the schedule divides the losses of several: reported_loss_is_divided.py
    reports = Model(deallocate_pipeline_outputs=deallocate).train(microbatches(1), loss)
    return [report["loss"].item() for report in reports]


control(run(2, body, deallocate=False)[1] == [16.0])
there = run(2, body, deallocate=True)[1]
conclude(there != [16.0], f"a loss of 16 is reported as {there[0]:g}", "a loss function may report the loss itself")
