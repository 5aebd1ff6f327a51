"""A module that uses torch.no_grad() in its forward: traced and cut by pipeline(), the part under it is lost."""

import torch
from ranks import conclude
from torch.distributed.pipelining import pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        with torch.no_grad():
            self.seen.add_(1)
        pipe_split()
        return self.layer(x)


try:
    pipeline(Model(), (torch.ones(1, 1),))
    why = None
except Exception as error:
    why = str(error).strip().splitlines()[0]
conclude(why, why, "it is traced and cut")
