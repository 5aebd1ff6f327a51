"""A parameter that forward does not use: traced and cut by pipeline(), no stage has it, so that a checkpoint lacks it."""

import torch
from ranks import conclude
from torch.distributed.pipelining import pipe_split, pipeline


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.spare = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)

    def forward(self, x):
        x = self.first(x)
        pipe_split()
        return self.second(x)


model = Model()
pipe = pipeline(model, (torch.ones(1, 1),))
held = {name for index in range(pipe.num_stages) for name, _ in pipe.get_stage_module(index).named_parameters()}
lost = sorted({name for name, _ in model.named_parameters()} - held)
conclude(lost, f"no stage has {', '.join(lost)}", "every parameter is in a stage")
