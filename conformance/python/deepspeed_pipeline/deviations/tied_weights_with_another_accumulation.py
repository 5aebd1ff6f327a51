"""Tied weights with ZeRO-1 and gradients that are accumulated in another type (grad_accum_dtype): they are not in `.grad`,
which alone is summed over the stages."""

import torch
from deepspeed.pipe import TiedLayerSpec
from ranks import conclude, data, engine_of, fail, run


class Line(torch.nn.Linear):
    def __init__(self):
        super().__init__(1, 1, bias=False)
        torch.nn.init.ones_(self.weight)


def body(accumulation):
    """The change of the stage's weight w in a step at a rate of 1/4, for y = w * w * x: 1/2."""
    config = {"zero_optimization": {"stage": 1, "reduce_bucket_size": 1000}, "zero_allow_untested_optimizer": True,
              "data_types": {"grad_accum_dtype": accumulation}}  # fmt: skip
    tied = [TiedLayerSpec("tied", Line) for _ in range(2)]
    engine = engine_of(tied, optimizer=lambda groups: torch.optim.SGD(groups, lr=0.25), config=config)
    engine.train_batch(data(torch.ones(1, 1)))
    return 1 - engine.module.tied_modules["tied"].weight.item()


control = run(2, lambda _: body("fp32"))
if control != [0.5, 0.5]:
    fail(f"a step changes a tied weight by {control}; expected 0.5 on both stages")
found = run(2, lambda _: body("bf16"))
conclude(found != [0.5, 0.5], f"a step that should change a tied weight by 0.5 changes its two copies by {found}",
         "the gradients of a tied weight are summed")  # fmt: skip
