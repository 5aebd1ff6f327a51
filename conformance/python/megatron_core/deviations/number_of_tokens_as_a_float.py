"""A loss function with three results whose number of tokens is the sum of a mask of real numbers, or of weights: the schedule
adds it to an integer in place."""

import torch
from ranks import Model, conclude, control, fails, microbatches, run


def body(dtype):
    model = Model(calculate_per_token_loss=True)
    model.train(microbatches(2), lambda y: (y.sum(), torch.ones(16).sum().to(dtype), {}))
    return [gradient for gradient, _ in model.gradients()]


control(run(2, body, torch.int) == [[1.5]] * 2)
why = fails(run, 2, body, torch.float, expected="can't be cast")
conclude(why, f"a number of tokens that is a float: {why}", "a number of tokens may be a float")
