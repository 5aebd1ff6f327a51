"""Two engines in one process, with other numbers of stages, as of a teacher and a student: the messages of both go by the
places of the one that was made last."""

import deepspeed
import torch
from deepspeed.pipe import PipelineModule
from ranks import conclude, data, fails, line, run


def engine(stages):
    module = PipelineModule([line() for _ in range(stages)], num_stages=stages, loss_fn=lambda y, _: y.mean(),
                            partition_method="uniform")  # fmt: skip
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "steps_per_print": None}
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    return deepspeed.initialize(model=module, optimizer=optimizer, config=config, dist_init_required=False)[0]


def body(second):
    first = engine(2)  # twice, on four ranks
    engine(second)
    first.train_batch(data(torch.ones(1, 1)))


run(4, lambda _: body(2))  # the control
failure = fails(run, 4, lambda _: body(4), expected="adjacent ranks")
conclude(failure, f"an engine of two stages after one of four was made: {failure}", "engines send by their own places")
