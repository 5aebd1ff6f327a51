"""Two parameters that a stage adds through views: autograd gives both one gradient's memory, which it adds to once for each
of them in the next backward (pytorch issue 34082): this part is plain autograd's, and the right answer here has it. But the
end of a step divides the gradient of each parameter in place, and so this memory twice."""

import torch
from ranks import compare

M = 2
T = torch.ones(M, 3)


class Sum(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = (torch.nn.Parameter(torch.zeros(3)) for _ in range(2))

    def forward(self, x):
        return x + (self.left.view(1, 3) + self.right.view(1, 3))


def program(pipe, bug):
    pipe.build([torch.nn.Linear(3, 3), Sum()], M, loss=lambda y, t: (y * t).sum(), scale_grads=bug)
    pipe.step(T, target=T)
    return {name: gradients for name, gradients in pipe.gradients().items() if name == "stage 1"}


def autograd(bug):
    """Without a pipeline: the gradients that plain autograd accumulates, divided once."""
    module = Sum()
    for row in T:
        (module(row[None]) * row[None]).sum().backward()
    return {"stage 1": [round(p.grad.sum().item() / (M if bug else 1), 4) for p in module.parameters()]}


compare("gradients that plain autograd accumulates, divided by 2 micro-batches", program, autograd)
