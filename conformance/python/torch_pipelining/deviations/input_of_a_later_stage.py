"""An input of the model that a later stage is the first to use (a target, say): a traced pipe has no place for it, though
its first stage is called with all inputs. (pytorch issue 130055 asks for arguments of later stages)"""

import torch
from ranks import LOOPED, compare
from torch.distributed.pipelining import pipe_split, pipeline

M = 2


class Model(torch.nn.Module):
    def __init__(self, late):
        super().__init__()
        self.first, self.second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
        self.late = late

    def forward(self, x, z):
        x = self.first(x) if self.late else self.first(x) * z
        pipe_split()
        return self.second(x) * z if self.late else self.second(x)


PIPES = {bug: pipeline(Model(bug), (torch.ones(1, 1), torch.ones(1, 1))) for bug in (False, True)}  # traced once, before the ranks are forked


def program(pipe, bug):
    pipe.build(PIPES[bug], M)
    output = pipe.step(torch.ones(M, 1), torch.ones(M, 1))
    return {} if output is None else {"rows": len(output)}


compare("an input that a later stage uses", program, {"rows": M}, schedules=LOOPED,
        error=r"TypeError: forward\(\) takes|PipeliningShapeError: .*Number of values")  # fmt: skip
