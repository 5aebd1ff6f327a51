"""A first stage without trainable parameters, as in fine-tuning: its output requires no gradient, and DeepSpeed calls
backward() for it."""

import torch
from ranks import conclude, data, engine_of, fails, line, run


def body(frozen):
    layers = [line(), line()]
    layers[0].requires_grad_(not frozen)
    engine_of(layers).train_batch(data(torch.ones(1, 1)))


run(2, lambda _: body(False))  # the control
failure = fails(run, 2, lambda _: body(True), expected="does not require grad")
conclude(failure, f"a frozen first stage: {failure}", "the first stage may be frozen")
