"""wall_clock_breakdown: DeepSpeed starts the timer of the backward once in the pipeline's engine and once in a hook, which fails."""

import torch
from ranks import conclude, data, engine_of, fails, line, run


def body(breakdown):
    config = {"wall_clock_breakdown": breakdown, "steps_per_print": 1000}
    engine_of([line(), line()], config=config).train_batch(data(torch.ones(1, 1)))


run(2, lambda _: body(False))  # the control
failure = fails(run, 2, lambda _: body(True), expected="already been started")
conclude(failure, f"a step with wall_clock_breakdown: {failure}", "wall_clock_breakdown measures time")
