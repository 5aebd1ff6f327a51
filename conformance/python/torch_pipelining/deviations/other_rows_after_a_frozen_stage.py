"""Two steps with sequences of different lengths, or batches of different sizes, after a first stage that is wholly frozen.
PyTorch keeps the receive buffers of the first step. Only the first stage's backward would notice it, and here it has none:
the elements that shorter sequences leave in the buffer count in the loss and in the gradients. (pytorch issue 159942)"""

import torch
from ranks import WHOLE, compare

M = 2


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1).requires_grad_(False), torch.nn.Linear(1, 1)], M, loss=lambda y, t: y.sum(),
               scale_grads=False)  # fmt: skip
    for length in (4, 2 if bug else 4):
        for module in pipe.modules.values():
            module.zero_grad()
        x = torch.ones(M, length, 1)
        pipe.step(x, target=x)
    return {"bias": pipe.modules[1].bias.grad.item()} if 1 in pipe.own else {}  # as many as elements of outputs


compare("the gradient of a second step with shorter sequences, after a frozen stage", program,
        lambda bug: {"bias": M * (2 if bug else 4)}, schedules=WHOLE, error="PipeliningShapeError")  # fmt: skip
