"""A loss function with parameters: their gradients are not divided by the number of micro-batches, as all others are."""

import torch
from ranks import ScaledMean, conclude, data, engine_of, fail, line, run

M = 4


def body():
    last, loss = line(), ScaledMean()
    engine_of([line(), last], M, loss).train_batch(data(*[torch.ones(1, 1)] * M))
    return 1 - last.weight.item(), 1 - loss.scale.item()  # the gradients: the learning rate is 1


weight, scale = run(2, lambda _: body())[1]
if weight != 1:
    fail(f"the gradient of the last layer is {weight}; expected 1")
conclude(scale != 1, f"of two gradients of 1, that of the loss's parameter is {scale}", "both gradients are 1")
