"""DualPipeVModule: eval_batch(num_micro_batches=...) with another number than that of the training looks for a micro-batch's
second half in another slot than that in which it is."""

import deepspeed.pipe
import torch
from ranks import conclude, data, engine_of, fails, line, run

M = 4  # two for each of two ranks


def body(micro_batches):
    engine = engine_of([line() for _ in range(4)], M, module_class=deepspeed.pipe.DualPipeVModule)
    engine.eval_batch(data(*[torch.ones(1, 1)] * micro_batches), num_micro_batches=micro_batches)


if not hasattr(deepspeed.pipe, "DualPipeVModule"):
    conclude(False, None, "there is no DualPipeVModule")
run(2, lambda _: body(M))  # the control
failure = fails(run, 2, lambda _: body(M + 2), expected="NoneType")
conclude(failure, f"an evaluation of {M + 2} micro-batches where training has {M}: {failure}",
         "an evaluation may have more micro-batches")  # fmt: skip
