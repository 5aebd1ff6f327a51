"""A checkpoint of a pipeline with bf16 and without ZeRO: loading it takes the optimizer's state for a list of states."""

import tempfile

import torch
from ranks import conclude, data, engine_of, fails, line, run


def body(bf16, folder):
    engine = engine_of([line(), line()], config={"bf16": {"enabled": bf16}})
    engine.train_batch(data(torch.ones(1, 1, dtype=torch.bfloat16 if bf16 else torch.float32)))
    engine.save_checkpoint(folder)
    engine.load_checkpoint(folder)


with tempfile.TemporaryDirectory() as folder:
    run(2, lambda _: body(False, folder))  # the control
with tempfile.TemporaryDirectory() as folder:
    failure = fails(run, 2, lambda _: body(True, folder), expected="KeyError")
conclude(failure, f"loading a checkpoint of bf16: {failure}", "a checkpoint of bf16 can be loaded")
