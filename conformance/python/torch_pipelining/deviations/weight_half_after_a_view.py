"""A stage that returns a view (a transposed tensor, a chunk), its successor on the same rank, backward in halves: the input
half detaches outputs in place, which PyTorch rejects for views. (pytorch issue 142229 concerned whole backwards)"""

import torch
from ranks import CPU, conclude, fed, run, without_messages_to_itself
from torch.distributed.pipelining import PipelineStage, ScheduleZBVZeroBubble


class Chunk(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 4)

    def forward(self, x):
        return self.layer(x).chunk(2, dim=1)[0]


def body(rank):
    modules = [torch.nn.Linear(2, 2), Chunk(), torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)]
    stages = [without_messages_to_itself(PipelineStage(modules[i], i, 4, CPU)) for i in (rank, 3 - rank)]
    schedule = ScheduleZBVZeroBubble(stages, 4, loss_fn=lambda y, t: y.sum())
    args, keywords = fed(rank, torch.ones(8, 2), torch.ones(8, 2), last=0)
    schedule.step(*args, **keywords)


run(2, body)
conclude(False, "", "a stage may return a view")
