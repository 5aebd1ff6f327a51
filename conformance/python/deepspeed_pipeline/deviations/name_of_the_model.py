"""A PipelineModule whose class is called GPT2ModelPipe: DeepSpeed takes the last of what its stages send for a mask, and one
tensor for a list of its rows."""

import deepspeed
import torch
from deepspeed.pipe import PipelineModule
from ranks import conclude, data, fails, line, run


def body(name):
    model = type(name, (PipelineModule,), {})
    module = model([line(), line()], num_stages=2, loss_fn=lambda y, _: y.mean(), partition_method="uniform")
    config = {"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1, "steps_per_print": None}
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    engine = deepspeed.initialize(model=module, optimizer=optimizer, config=config, dist_init_required=False)[0]
    engine.train_batch(data(torch.ones(2, 1)))


run(2, lambda _: body("GPT2"))  # the control
failure = fails(run, 2, lambda _: body("GPT2ModelPipe"), expected="must be Tensor, not tuple")
conclude(failure, f"a model called GPT2ModelPipe: {failure}", "a model may be called GPT2ModelPipe")
