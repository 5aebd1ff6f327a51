"""A loss function with parameters, with bf16: their gradients are there before those of the last stage's outputs, at which
DeepSpeed clears all gradients of 16 bits, so that they are never trained."""

import torch
from ranks import ScaledMean, conclude, data, engine_of, fail, line, run


def body(bf16):
    """What a step changes: the weight of the last stage, and the parameter of the loss."""
    last, loss = line(), ScaledMean()
    sgd = lambda groups: torch.optim.SGD(groups, lr=0.25)
    engine = engine_of([line(), last], loss_fn=loss, optimizer=sgd, config={"bf16": {"enabled": bf16}})
    engine.train_batch(data(torch.ones(1, 1, dtype=torch.bfloat16 if bf16 else torch.float32)))
    return 1 - last.weight.item(), 1 - loss.scale.item()


control = run(2, lambda _: body(False))[1]
if control != (0.25, 0.25):
    fail(f"in 32 bits a step changes the layer and the loss by {control}; expected 0.25")
weight, scale = run(2, lambda _: body(True))[1]
if weight != 0.25:
    fail(f"with bf16 a step changes the layer by {weight}; expected 0.25")
conclude(scale != 0.25, f"with bf16 a step changes the layer by {weight}, and the loss's parameter by {scale}",
         "with bf16 the loss's parameters are trained")  # fmt: skip
