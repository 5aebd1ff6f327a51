"""get_grad_norm_fp32() takes the infinity norm with max() of Python, for which nothing is greater than NaN and NaN is greater
than nothing: gradients that are not numbers are left out of it, unless they come first."""

import math

import torch
from ranks import conclude, control, on_cpu, parallel_state, run
from megatron.core.optimizer.clip_grads import get_grad_norm_fp32


def body(norm, *values):
    with on_cpu():
        return get_grad_norm_fp32([torch.full((4,), v) for v in values], norm, parallel_state.get_model_parallel_group())


control(all(math.isnan(norm) for norm in run(2, body, 2.0, 1.0, math.nan)))
control(all(norm == 3 for norm in run(2, body, math.inf, 1.0, 3.0)))
there = run(2, body, math.inf, 1.0, math.nan)
conclude(not all(math.isnan(norm) for norm in there), f"the infinity norm of the gradients 1 and NaN is {there[0]:g}",
         "the infinity norm of a gradient that is NaN is NaN")  # fmt: skip
