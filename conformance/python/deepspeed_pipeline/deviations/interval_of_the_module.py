"""activation_checkpoint_interval given to the PipelineModule, not in the configuration: the input of the first stage requires
no gradient, so that its checkpoint's output does not either."""

import torch
from ranks import conclude, data, engine_of, fails, line, run


def body(in_module):
    config = {} if in_module else {"pipeline": {"activation_checkpoint_interval": 1}}
    options = {"activation_checkpoint_interval": 1} if in_module else {}
    engine_of([line(), line()], config=config, **options).train_batch(data(torch.ones(1, 1)))


run(2, lambda _: body(False))  # the control
failure = fails(run, 2, lambda _: body(True), expected="does not require grad")
conclude(failure, f"an interval of the PipelineModule: {failure}", "the PipelineModule may have the interval")
