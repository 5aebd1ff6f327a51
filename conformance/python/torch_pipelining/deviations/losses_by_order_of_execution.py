"""The loss of a micro-batch is looked up by its number in a list that is filled in the order of execution. If the last
stage executes micro-batch 1 before 0, the backward starts from the wrong loss; outputs are joined in that order too."""

import tempfile

import torch
from ranks import CPU, compare
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

IN_ORDER = "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"
OUT_OF_ORDER = "0F1,0F0,0B1,0B0\n1F1,1F0,1B1,1B0\n"


def program(pipe, bug):
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(layer.weight)
    stage = PipelineStage(layer, pipe.rank, 2, CPU)
    pipe.use(_PipelineScheduleRuntime([stage], 2, loss_fn=lambda y, t: (y * t).sum(), scale_grads=False))
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(OUT_OF_ORDER if bug else IN_ORDER)
        file.flush()
        pipe.schedule._load_csv(file.name)
    losses = []
    keywords = {"losses": losses} if pipe.has_last else {}
    output = pipe.step(torch.tensor([[1.0], [2.0]]), target=torch.tensor([[1.0], [10.0]]), **keywords)
    if pipe.has_first:
        return {"gradient of stage 0": layer.weight.grad.item()}
    return {"outputs": output.flatten().tolist(), "losses": [loss.item() for loss in losses]}


compare("micro-batch 1 before 0", program, {"gradient of stage 0": 21, "outputs": [1, 2], "losses": [1, 20]},
        schedules=("CSV",), error="RuntimeError: (Loss for microbatch . is not available|.*has gradients None)")  # fmt: skip
