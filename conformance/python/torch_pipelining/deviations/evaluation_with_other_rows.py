"""An eval() on a batch of another size than that of the eval() or step() before it: PyTorch keeps the shapes that it
inferred first. 2.15 infers them again where a step and an evaluation alternate, but not for a second evaluation."""

import torch
from ranks import LOOPED, compare

M = 2


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1) for _ in range(2)], M, loss=lambda y, t: y.sum())
    shapes = []
    for call, rows in ((pipe.step, 4), (pipe.eval, 4), (pipe.eval, 2 if bug else 4)):
        x = torch.ones(rows, 1)
        output = call(x, target=x)
        shapes.append(None if output is None else list(output.shape))
    return {"shapes": shapes} if pipe.has_last else {}


compare("shapes of the outputs of a step and two evaluations", program,
        lambda bug: {"shapes": [[4, 1], [4, 1], [2 if bug else 4, 1]]}, schedules=LOOPED,
        error="PipeliningShapeError")  # fmt: skip
