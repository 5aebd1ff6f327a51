"""activation_checkpoint_interval with an embedding as the first layer: no input of its checkpoint requires a gradient, so that
its output, and all that follows in the stage, does not either. (DeepSpeed issue 688)"""

import torch
from ranks import conclude, data, engine_of, fails, line, run


def body(interval):
    config = {"pipeline": {"activation_checkpoint_interval": interval}}
    layers = [torch.nn.Embedding(2, 1), line(), line(), line()]
    engine_of(layers, config=config).train_batch(data(torch.tensor([0, 1])))


run(2, lambda _: body(0))  # the control
failure = fails(run, 2, lambda _: body(1), expected="does not require grad")
conclude(failure, f"a checkpointed embedding: {failure}", "an embedding may be checkpointed")
