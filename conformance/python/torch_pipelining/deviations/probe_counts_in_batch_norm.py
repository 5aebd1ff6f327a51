"""Shape inference at run time runs the module once on zeros, in training mode: running statistics include that run.
(pytorch pull request 188763 fixes it)"""

import torch
from ranks import compare

M = 2


def program(pipe, bug):
    like = [torch.ones(4, 1, requires_grad=s > 0) for s in range(3)]
    modules = [torch.nn.Linear(1, 1), torch.nn.BatchNorm1d(1)]
    pipe.build(modules, M, loss=lambda y, t: y.sum(), shapes=None if bug else like)
    pipe.step(torch.ones(4 * M, 1), target=torch.ones(4 * M, 1))
    return {"num_batches_tracked": pipe.modules[1].num_batches_tracked.item()} if 1 in pipe.own else {}


compare("running statistics of 2 micro-batches", program, {"num_batches_tracked": M})
