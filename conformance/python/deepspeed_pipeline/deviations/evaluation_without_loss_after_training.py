"""eval_batch(compute_loss=False) after train_batch(): DeepSpeed adds the outputs to the total loss of the training step."""

import torch
from ranks import conclude, data, engine_of, fails, line, run


def body(train_first):
    engine = engine_of([line(), line()])
    if train_first:
        engine.train_batch(data(torch.ones(2, 1)))
    engine.eval_batch(data(torch.ones(2, 1)), compute_loss=False, reduce_output=None)


run(2, lambda _: body(False))  # the control
failure = fails(run, 2, lambda _: body(True), expected="broadcast shape")
conclude(failure, f"an evaluation without a loss after a training step: {failure}",
         "an evaluation without a loss works after a training step")  # fmt: skip
