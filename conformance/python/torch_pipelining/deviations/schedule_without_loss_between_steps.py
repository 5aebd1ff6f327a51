"""Two schedules of the same stages, one to train and one without a loss to evaluate: what the second one prepares stays in
the stages, so that after it the first one's step takes activations for values without a gradient, and sends zeros back."""

import torch
from ranks import CLASSES, LOOPED, SINGLE, compare

M = 4


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1, bias=False) for _ in range(2)], M, loss=lambda y, t: y.sum(), scale_grads=False)
    for module in pipe.modules.values():
        torch.nn.init.ones_(module.weight)
    x, training = torch.ones(M, 1), pipe.schedule
    stages = training._stage if pipe.name in SINGLE else training._stages
    pipe.step(x, target=x)
    pipe.use(CLASSES[pipe.name](stages, M, scale_grads=False))
    if bug:
        pipe.eval(x)
    pipe.use(training)
    pipe.step(x, target=x)
    return pipe.gradients()


compare("gradients of two steps with another schedule's eval() between them", program,
        {"stage 0": [2 * M], "stage 1": [2 * M]}, schedules=LOOPED,
        error="has gradients None|non-empty inputs")  # fmt: skip
