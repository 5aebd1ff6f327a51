"""Training data that DeepSpeed loads itself, with a number of samples that the size of a micro-batch does not divide: the last
micro-batch is smaller, and the buffers between the stages are not."""

import deepspeed
import torch
from deepspeed.pipe import PipelineModule
from ranks import conclude, fails, line, run


def body(samples):
    module = PipelineModule([line(), line()], num_stages=2, loss_fn=lambda y, _: y.mean(), partition_method="uniform")
    config = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2, "steps_per_print": None}
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    dataset = [(torch.ones(1), torch.zeros(1))] * samples
    engine = deepspeed.initialize(model=module, optimizer=optimizer, config=config, training_data=dataset,
                                  dist_init_required=False)[0]  # fmt: skip
    engine.train_batch()


run(2, lambda _: body(4))  # the control
failure = fails(run, 2, lambda _: body(3), expected="")
conclude(failure, f"a last micro-batch of one sample after one of two: {failure}", "the last micro-batch may be smaller")
