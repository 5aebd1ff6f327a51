"""Hooks that are called after a gradient was added to .grad (register_post_accumulate_grad_hook), backward in halves: the
weight half adds to .grad itself and calls none."""

import torch
from ranks import HALVES, WHOLE, compare

M = 4


def program(pipe, bug):
    modules = [torch.nn.Linear(2, 2) for _ in range(4)]
    like = [torch.ones(1, 2, requires_grad=s > 0) for s in range(5)]
    pipe.build(modules, M, loss=lambda y, t: y.sum(), shapes=like)
    calls = {f"stage {stage}": 0 for stage in pipe.own} if bug else {}
    for stage in pipe.own if bug else ():
        def count(_, stage=f"stage {stage}"):
            calls[stage] += 1

        pipe.modules[stage].weight.register_post_accumulate_grad_hook(count)
    pipe.step(torch.ones(M, 2), target=torch.ones(M, 2))
    return calls


compare("calls of hooks after an accumulation", program, lambda bug: {f"stage {s}": M for s in range(4)} if bug else {},
        stages=4, schedules=(*WHOLE, *HALVES))  # fmt: skip
