"""Buffers that are not persistent and constant tensors of a model: traced and cut by pipeline(), they are persistent buffers of
the stages, so that a checkpoint of these has tensors that the model refuses to load."""

import torch
from ranks import NONE, compare
from torch.distributed.pipelining import pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self, persistent):
        super().__init__()
        self.first, self.second = (torch.nn.Linear(1, 1, bias=False) for _ in range(2))
        self.register_buffer("mask", torch.ones(1), persistent=persistent)

    def forward(self, x):
        x = self.first(x) * self.mask
        pipe_split()
        return self.second(x)


def program(_, bug):
    model = Model(not bug)
    names = sorted(model.state_dict())
    pipe = pipeline(model, (torch.ones(1, 1),))
    held = {name for s in range(pipe.num_stages) for name in pipe.get_stage_module(s).state_dict()}
    return {"tensors that the model lacks": sorted(held.difference(names))}


compare("the state_dict() of all stages", program, {"tensors that the model lacks": []}, schedules=NONE)
