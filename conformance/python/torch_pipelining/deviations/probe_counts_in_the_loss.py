"""A loss function with buffers (running statistics): PyTorch restores the buffers of stages after the inference of shapes,
but not those of the loss function, which it calls as well."""

import torch
from ranks import EVERY, compare

M = 4


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def forward(self, output, target):
        self.count += 1
        return output.sum()


def program(pipe, bug):
    loss = Loss()
    given = None if bug else [torch.ones(1, 1, requires_grad=s > 0) for s in range(5)]
    pipe.build([torch.nn.Linear(1, 1) for _ in range(4)], M, loss=loss, shapes=given)
    pipe.step(torch.ones(M, 1), target=torch.ones(M, 1))
    return {"losses": loss.count.item()} if pipe.has_last else {}


compare("losses that the loss function counts", program, {"losses": M}, stages=4, schedules=EVERY)
