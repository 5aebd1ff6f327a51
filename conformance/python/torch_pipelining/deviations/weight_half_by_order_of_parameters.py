"""A parameter that meets the path of the input twice, each time beside another parameter (a bias of two layers that have
biases of their own, say), backward in halves. PyTorch groups parameters by where they meet that path: if the shared one is
registered last, it joins two groups, and its gradient and another's are counted in both."""

import torch
from ranks import HALVES, compare

M = 4


class Biased(torch.nn.Module):
    def __init__(self, names):
        super().__init__()
        for name in names:
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(1)))

    def forward(self, x):
        return (x + (-self.a - self.common)) + (x + (-self.b - self.common))


def program(pipe, bug):
    order = ("a", "b", "common") if bug else ("common", "a", "b")
    modules = [torch.nn.Linear(1, 1), Biased(order), torch.nn.Linear(1, 1, bias=False), torch.nn.Identity()]
    torch.nn.init.ones_(modules[2].weight)
    pipe.build(modules, M, loss=lambda y, t: y.sum(), scale_grads=False)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    if 1 not in pipe.own:
        return {}
    return {name: p.grad.item() for name, p in pipe.modules[1].named_parameters()}


compare("gradients of biases", program, {"a": -M, "b": -M, "common": -2 * M}, stages=4, schedules=HALVES)
