"""fp16 without ZeRO: gradients are divided by the loss scale, by which the loss was not multiplied. (DeepSpeed pull request 8393)

DeepSpeed asks whether the CPU computes in 16 bits quickly; here the answer is yes."""

import torch
from deepspeed.accelerator import get_accelerator
from ranks import conclude, data, engine_of, fail, line, run


def body(rank, scale):
    get_accelerator().is_fp16_supported = lambda: True
    layers = [line(), line()]
    config = {"fp16": {"enabled": True, "loss_scale": scale}}
    engine_of(layers, config=config).train_batch(data(torch.ones(1, 1, dtype=torch.float16)))
    return 1 - layers[rank].weight.item()  # the gradient: the learning rate is 1


control, found = (run(2, lambda rank, s=scale: body(rank, s)) for scale in (1, 1024))
if control != [1, 1]:
    fail(f"with a loss scale of 1 the gradients are {control}; expected 1")
conclude(found != [1, 1], f"with a loss scale of 1024 the gradients of 1 are {found}", "the loss scale changes no gradient")
