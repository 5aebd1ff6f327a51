"""A frozen tied weight, as in fine-tuning, with bf16: DeepSpeed asks for a gradient in 32 bits that only trained ones have."""

import torch
from deepspeed.pipe import TiedLayerSpec
from ranks import conclude, data, engine_of, fails, line, run


class Frozen(torch.nn.Linear):
    def __init__(self):
        super().__init__(1, 1, bias=False)
        self.requires_grad_(False)


def body(bf16):
    first, last = TiedLayerSpec("tied", Frozen), TiedLayerSpec("tied", Frozen)
    engine = engine_of([first, line(), line(), last], config={"bf16": {"enabled": bf16}})
    engine.train_batch(data(torch.ones(1, 1, dtype=torch.bfloat16 if bf16 else torch.float32)))


run(2, lambda _: body(False))  # the control
failure = fails(run, 2, lambda _: body(True), expected="_hp_grad")
conclude(failure, f"a frozen tied weight with bf16: {failure}", "a tied weight may be frozen")
