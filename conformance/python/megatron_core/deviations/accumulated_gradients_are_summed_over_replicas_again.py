"""With calculate_per_token_loss, DistributedDataParallel sums the gradients of replicas in the buffer in which they
accumulate: if two steps accumulate, each replica has the sum of the first step, and the second one adds these up once more."""

import torch
from ranks import Model, conclude, control, microbatches, run
from megatron.core.distributed import finalize_model_grads


def undivided(model, tokens=None, **words):
    """Without the division by tokens, which other deviations are about."""
    finalize_model_grads(model, None, **words)


def body(steps):
    model = Model(calculate_per_token_loss=True, finalize_model_grads_func=undivided)
    for _ in range(steps):
        model.train(microbatches(2), lambda y: (y.mean(), torch.tensor(1), {}))
    return [gradient for gradient, _ in model.gradients()]


control(run(2, body, steps=1, replicas=2) == [[6.0]] * 4)  # of micro-batches of ones and of twos, on each replica
control(run(2, body, steps=2) == [[6.0]] * 2)
twice = run(2, body, steps=2, replicas=2)
conclude(twice != [[12.0]] * 4, f"two steps of gradient 6, summed over two replicas, accumulate to {twice[0][0]:g}",
         "two steps of gradient 6, summed over two replicas, accumulate to 12")  # fmt: skip
