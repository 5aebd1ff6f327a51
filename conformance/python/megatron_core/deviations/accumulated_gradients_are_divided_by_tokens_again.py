"""With calculate_per_token_loss, finalize_model_grads divides all that is accumulated by the tokens of one step: if two
steps accumulate, the gradient of the first one is divided twice."""

import torch
from ranks import Model, conclude, control, microbatches, run


def body(steps):
    model = Model(calculate_per_token_loss=True)
    for _ in range(steps):
        model.train(microbatches(2, batch=1), lambda y: (y.sum(), torch.tensor(8), {}))
    return [gradient for gradient, _ in model.gradients()]


once = [gradient for (gradient,) in run(2, body, steps=1)]
control(once == [1.5, 1.5])
twice = [gradient for (gradient,) in run(2, body, steps=2)]
conclude(twice != [3.0, 3.0], f"two steps of gradient 1.5, of 16 tokens each, accumulate to {twice[0]:g}",
         "two steps of gradient 1.5 accumulate to 3")
