"""torch's ReduceLROnPlateau: its step() needs the loss, and DeepSpeed gives it the size of a batch instead, so that the rate
falls while the loss does."""

import torch
from ranks import conclude, data, engine_of, fail, line, run

STEPS = 4


def body(schedule):
    """The losses of the steps, and the rate after them."""
    engine = engine_of([line(), line()], optimizer=lambda groups: torch.optim.SGD(groups, lr=0.125), lr_scheduler=schedule)
    losses = [engine.train_batch(data(torch.ones(1, 1))).item() for _ in range(STEPS)]
    return losses, engine.optimizer.param_groups[0]["lr"]


_, control = run(2, lambda _: body(lambda optimizer: torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)))[0]
if control != 0.125:
    fail(f"a constant rate of 0.125 is {control}")
plateau = lambda optimizer: torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
losses, found = run(2, lambda _: body(plateau))[0]
if losses != sorted(losses, reverse=True):
    fail(f"the losses do not fall: {losses}")
conclude(found != 0.125, f"ReduceLROnPlateau reduces a rate of 0.125 to {found} in {STEPS} steps whose losses fall each time",
         "ReduceLROnPlateau leaves the rate while losses fall")  # fmt: skip
