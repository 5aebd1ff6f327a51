"""enable_autocast surrounds the forward only, and tensor_parallel.checkpoint() does not keep its state, as PyTorch's does:
what is recomputed in the backward is computed in full precision, and gradients are those of other values."""

import functools

import torch
from ranks import Model, checkpoint, conclude, control, microbatches, run

WORD = torch.autocast


def squared(y):
    product = y.flatten().unsqueeze(1) @ torch.ones(1, 1)  # 257, which is 256 in bfloat16
    return product * product


def body(recomputes):
    torch.autocast = lambda _, **words: WORD("cpu", **words)  # the schedule names "cuda"
    model = Model(enable_autocast=True, autocast_dtype=torch.bfloat16)
    for layer in model.layers:
        if layer.post_process:
            layer.after = functools.partial(checkpoint, squared) if recomputes else squared
    model.train([torch.full((1, 1, 8), 257.0)], lambda y: (y.float().sum(), {}))
    return [gradient for _, gradient in model.gradients()]


right = [[8 * 2 * 256.0]] * 2
control(run(2, body, recomputes=False) == right)
there = run(2, body, recomputes=True)
conclude(there != right, f"a gradient of {right[0][0]:g} under autocast is {there[0][0]:g} with recomputation",
         "recomputation gives the same gradient under autocast")  # fmt: skip
