"""A last stage that returns a dict, and an output_merge_spec with the same keys in another order: PyTorch pairs them by
order, so that values change names."""

import torch
from ranks import LOOPED, compare, conclude
from torch.distributed.pipelining.microbatch import TensorChunkSpec

M = 2


class Last(torch.nn.Module):
    def forward(self, x):
        return {"value": x, "tenfold": 10 * x}


def program(pipe, bug):
    keys = ("tenfold", "value") if bug else ("value", "tenfold")
    pipe.build([torch.nn.Identity(), Last()], M, shapes=[torch.ones(1, 1)] * 3,
               output_merge_spec={key: TensorChunkSpec(0) for key in keys})  # fmt: skip
    output = pipe.eval(torch.ones(M, 1))
    return {key: value.flatten().tolist() for key, value in output.items()} if pipe.has_last else {}


if torch.__version__.startswith("2.11."):
    conclude(f"torch {torch.__version__}", False, None, "a stage cannot return a dict")
compare("outputs in a dict whose merge spec has another order", program, {"value": [1.0, 1.0], "tenfold": [10.0, 10.0]},
        schedules=LOOPED)  # fmt: skip
