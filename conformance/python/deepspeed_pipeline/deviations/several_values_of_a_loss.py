"""A loss function that returns several values for an evaluation: their mean over the micro-batches takes the first value for
the place of the second. The number of hits is lost then, or an index of real numbers rejected."""

import torch
from ranks import conclude, data, engine_of, fail, line, run

M = 2


def body(both):
    """The mean of what the loss function returns: for each of the micro-batches one hit, and 1."""
    loss = lambda y, _: (torch.ones((), dtype=torch.int64), y.mean()) if both else y.mean()
    engine = engine_of([line(), line()], M, loss)
    found = engine.eval_batch(data(*[torch.ones(1, 1)] * M), bcast_loss=False)
    return found if found is None else [x.item() for x in found] if both else found.item()


control = run(2, lambda _: body(False))[1]
if control != 1:
    fail(f"the mean of a loss alone is {control}; expected 1")
found = run(2, lambda _: body(True))[1]
conclude(found != [1, 1], f"the means of one hit and a loss of 1 in each micro-batch are {found}", "each value has its mean")
