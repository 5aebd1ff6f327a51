"""The loss of a micro-batch is looked up by its number in a list that is filled in the order of execution. If the last
stage executes micro-batch 1 before 0, the backward starts from the wrong loss; outputs are joined in that order too."""

import tempfile

import torch
from ranks import CPU, conclude, run
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime


def body(rank):
    layer = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.ones_(layer.weight)
    schedule = _PipelineScheduleRuntime([PipelineStage(layer, rank, 2, CPU)], 2, loss_fn=lambda y, t: (y * t).sum(),
                                        scale_grads=False)
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write("0F1,0F0,0B1,0B0\n1F1,1F0,1B1,1B0\n")
        file.flush()
        schedule._load_csv(file.name)
    losses = []
    keywords = {"target": torch.tensor([[1.0], [10.0]]), "losses": losses} if rank == 1 else {}
    output = schedule.step(*([torch.tensor([[1.0], [2.0]])] if rank == 0 else []), **keywords)
    return (None if output is None else output.flatten().tolist()), [x.item() for x in losses], layer.weight.grad.item()


(_, _, gradient), (outputs, losses, _) = run(2, body)
wrong = (outputs, losses, gradient) != ([1.0, 2.0], [1.0, 20.0], 21.0)
conclude(wrong, f"outputs {outputs} for [1, 2], losses {losses} for [1, 20], first stage's gradient {gradient} for 21",
         "micro-batches out of order give the right outputs, losses and gradients")
