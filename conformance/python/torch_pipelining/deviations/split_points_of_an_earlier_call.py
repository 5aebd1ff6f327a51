"""pipeline() twice for one model: the split points of the first call stay in it, so that the second pipe has more stages than
its split_spec says. With the same split point again it calls itself without end."""

import torch
from ranks import NONE, compare
from torch.distributed.pipelining import SplitPoint, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(1, 1) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def program(_, bug):
    model, stages = Model(), []
    for layer in ("layers.1", "layers.2"):
        stages.append(pipeline(model, (torch.ones(1, 1),), split_spec={layer: SplitPoint.BEGINNING}).num_stages)
        model = model if bug else Model()
    return {"stages": stages}


compare("stages of two pipes, each with one split point", program, {"stages": [2, 2]}, schedules=NONE)
