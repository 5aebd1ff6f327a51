"""An LSTM layer, one operator with the parameters and the input as arguments and several results, backward in halves:
the weight half adds up the gradients of all results and uses the sum for the first one. (pytorch issue 170277)"""

import torch
from ranks import compare

M = 2
X = torch.linspace(-1, 1, 24).reshape(2, 4, 3)


class Cells(torch.nn.Module):
    def __init__(self, states):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.LSTM(3, 3, batch_first=True)
        self.states = states

    def forward(self, x):
        y, (h, c) = self.layer(x)
        return y + (h + c).transpose(0, 1) if self.states else y


def rounded(module):
    return [round(value, 3) for value in module.layer.weight_ih_l0.grad.flatten().tolist()]


def program(pipe, bug):
    pipe.build([Cells(bug), Cells(bug)], M, loss=lambda y, t: y.sum(), scale_grads=False)
    pipe.step(X, target=X)
    return {"gradient": rounded(pipe.modules[1])[:4]} if 1 in pipe.own else {}


def right(bug):
    first, second = Cells(bug), Cells(bug)
    second(first(X)).sum().backward()
    return {"gradient": rounded(second)[:4]}


compare("the first gradients of an LSTM's weights", program, right, schedules=("InterleavedZeroBubble",))
