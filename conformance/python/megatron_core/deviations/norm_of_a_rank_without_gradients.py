"""get_grad_norm_fp32() on a rank without gradients, such as a frozen stage: every norm but the second fails."""

import math

import torch
from ranks import conclude, control, fails, on_cpu, parallel_state, run
from megatron.core.optimizer.clip_grads import get_grad_norm_fp32


def body(norm, frozen):
    gradients = [] if frozen and parallel_state.get_pipeline_model_parallel_rank() == 0 else [torch.full((4,), 2.0)]
    with on_cpu():
        return get_grad_norm_fp32(gradients, norm, parallel_state.get_model_parallel_group())


control(run(2, body, 2.0, frozen=True) == [4.0] * 2)
control(run(2, body, math.inf, frozen=False) == [2.0] * 2)
control(run(2, body, 1.0, frozen=False) == [16.0] * 2)
why = fails(run, 2, body, math.inf, frozen=True, expected="empty")
conclude(why, f"the infinity norm with a rank that has no gradient: {why}", "a rank without gradients adds nothing to the norm")
