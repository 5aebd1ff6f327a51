"""A stage whose input needs no gradient (all before it is frozen), backward in halves: its parameters' gradients are
silently lost. PyTorch finds a parameter where its path meets that of the input; here the paths never meet."""

import torch
from ranks import HALVES, compare

M = 4


def program(pipe, bug):
    layers = [torch.nn.Linear(1, 1, bias=False) for _ in range(4)]
    for layer in layers:
        torch.nn.init.ones_(layer.weight)
    layers[0].requires_grad_(not bug)
    pipe.build(layers, M, loss=lambda y, t: y.sum(), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return pipe.gradients()


compare("gradients after a frozen stage", program,
        lambda bug: {f"stage {s}": [None if bug and s == 0 else M] for s in range(4)}, stages=4, schedules=HALVES)  # fmt: skip
