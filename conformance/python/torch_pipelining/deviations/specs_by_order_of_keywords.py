"""kwargs_chunk_spec={"a": ..., "b": ...} and step(b=..., a=...): PyTorch takes the specs in their order, not by name, so that
each keyword is divided along the other one's dimension."""

import torch
from ranks import LOOPED, compare
from torch.distributed.pipelining.microbatch import TensorChunkSpec

M = 2


class First(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, x, by_row, by_column):
        return x * self.weight * by_row.sum() + 100 * by_column.sum()


def program(pipe, bug):
    pipe.build([First(), torch.nn.Identity()], M, loss=lambda y, t: y.sum(),
               kwargs_chunk_spec=TensorChunkSpec.from_dict({"by_row": 0, "by_column": 1}))  # fmt: skip
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    names = ("by_column", "by_row") if bug else ("by_row", "by_column")
    output = pipe.step(torch.ones(M, 1), target=torch.ones(M, 1), **(dict.fromkeys(names, table) if pipe.has_first else {}))
    return {"outputs": output.flatten().tolist()} if pipe.has_last else {}


# ScheduleLoopedBFS takes no chunk specs; V-shaped ones give a keyword to the last stage too.
compare("keywords in another order than their specs", program, {"outputs": [403.0, 607.0]},
        schedules=[name for name in LOOPED if name != "LoopedBFS"])  # fmt: skip
