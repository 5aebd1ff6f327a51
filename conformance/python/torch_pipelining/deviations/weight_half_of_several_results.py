"""An LSTM layer, one operator with the parameters and the input as arguments and several results, backward in halves:
the weight half adds up the gradients of all results and uses the sum for the first one. (pytorch issue 170277)"""

import torch
from ranks import CPU, conclude, fed, run
from torch.distributed.pipelining import PipelineStage, ScheduleInterleavedZeroBubble


class Cells(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.LSTM(3, 3, batch_first=True)

    def forward(self, x):
        y, (h, c) = self.layer(x)
        return y + (h + c).transpose(0, 1)


X = torch.linspace(-1, 1, 24).reshape(2, 4, 3)


def body(rank):
    stage = PipelineStage(Cells(), rank, 2, CPU)
    schedule = ScheduleInterleavedZeroBubble([stage], 2, loss_fn=lambda y, t: y.sum(), scale_grads=False)
    args, keywords = fed(rank, X, X)
    schedule.step(*args, **keywords)
    return stage.submod.layer.weight_ih_l0.grad.tolist()


_, gradient = run(2, body)
first, second = Cells(), Cells()
second(first(X)).sum().backward()
error = (torch.tensor(gradient) - second.layer.weight_ih_l0.grad).abs().max() / second.layer.weight_ih_l0.grad.abs().max()
conclude(error > 1e-4, f"an LSTM's weights have gradients that are {error:.0%} of the largest off", "the gradients of an LSTM's weights are right")
