"""A checkpoint with bf16 and ZeRO-1 is loaded into fewer stages: the weights are there, but the optimizer gets the 32-bit copies of the
first stage only, and zeros for the other layers, to which the next step sets them."""

import tempfile

import torch
from ranks import conclude, data, engine_of, fail, line, run

CONFIG = {"bf16": {"enabled": True}, "data_types": {"grad_accum_dtype": "fp32"}, "zero_optimization": {"stage": 1},
          "zero_allow_untested_optimizer": True}  # fmt: skip


def engine():
    layers = [line(2.0), line(3.0)]
    return layers, engine_of(layers, optimizer=lambda groups: torch.optim.SGD(groups, lr=0.0), config=CONFIG)


def save(folder):
    engine()[1].save_checkpoint(folder)


def body(folder, optimizer):
    """The weights after loading, and those after a step at a rate of 0."""
    layers, loaded = engine()
    loaded.load_checkpoint(folder, load_optimizer_states=optimizer)
    before = [layer.weight.item() for layer in layers]
    loaded.train_batch(data(torch.ones(1, 1, dtype=torch.bfloat16)))
    return before, [layer.weight.item() for layer in layers]


with tempfile.TemporaryDirectory() as folder:
    run(2, lambda _: save(folder))
    (control,) = run(1, lambda _: body(folder, False))
    if control != ([2, 3], [2, 3]):
        fail(f"without the optimizer's state the weights 2 and 3 are {control[0]}, and after a step at a rate of 0 {control[1]}")
    ((before, after),) = run(1, lambda _: body(folder, True))
if before != [2, 3]:
    fail(f"the weights 2 and 3 are {before} after loading")
conclude(after != [2, 3], f"of two stages' checkpoint in one stage, the weights 2 and 3 are {after} after a step at a rate of 0",
         "a checkpoint of two stages continues in one")  # fmt: skip
