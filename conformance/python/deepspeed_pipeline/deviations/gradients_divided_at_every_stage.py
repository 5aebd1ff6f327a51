"""Every stage divides the gradients by the number of micro-batches, and sends on what it divided: of M micro-batches over P
stages, the first stage's gradients are divided by M^P. (DeepSpeed issue 8152)"""

import torch
from ranks import conclude, data, engine_of, fail, line, run

M = 4


def body(rank):
    layers = [line(), line()]
    engine_of(layers, M).train_batch(data(*[torch.ones(1, 1)] * M))
    return 1 - layers[rank].weight.item()  # the gradient: the learning rate is 1


first, last = run(2, body)  # both are 1: the mean over micro-batches of dy/dw = 1
if last != 1:
    fail(f"the last stage's gradient is {last}; expected 1")
conclude(first != 1, f"of two gradients of 1 the first stage's is {first}", "both stages have a gradient of 1")
