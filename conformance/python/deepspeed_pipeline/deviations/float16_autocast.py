"""torch_autocast with float16, without ZeRO: every stage has a scaler of its own, of which only the last one's has scaled a loss;
the step of the others fails."""

import torch
from ranks import conclude, data, engine_of, fails, line, run


def body(dtype):
    config = {"torch_autocast": {"enabled": True, "dtype": dtype}}
    engine_of([line(), line()], loss_fn=lambda y, _: y.float().mean(), config=config).train_batch(data(torch.ones(1, 1)))


run(2, lambda _: body("bfloat16"))  # the control
failure = fails(run, 2, lambda _: body("float16"), expected="_scale is None")
conclude(failure, f"torch_autocast with float16: {failure}", "torch_autocast trains with float16")
