"""The loss that train_batch() returns is summed over the micro-batches in the type of the losses: with bf16 the sum of losses
of 1 ends at 256."""

import torch
from ranks import conclude, data, engine_of, fail, line, run


def body(micro_batches):
    engine = engine_of([line(), line()], micro_batches, config={"bf16": {"enabled": True}})
    return engine.train_batch(data(*[torch.ones(1, 1, dtype=torch.bfloat16)] * micro_batches)).item()


control = run(2, lambda _: body(256))[0]
if control != 1:
    fail(f"the mean of 256 losses of 1 is {control}")
found = run(2, lambda _: body(512))[0]
conclude(found != 1, f"the mean of 512 losses of 1 is {found}", "the mean of 512 losses of 1 is 1")
