"""A model with experts, and an evaluation in torch.inference_mode() before the first step: the schedule keeps the scale of
auxiliary losses, which is then a tensor of that mode, and cannot change it in a step."""

import torch
from ranks import Model, conclude, control, fails, microbatches, run


def body(mode):
    model = Model(num_moe_experts=1)
    with mode():
        model.train(microbatches(2), lambda y: (y.sum(), {}), forward_only=True)
    model.train(microbatches(2), lambda y: (y.sum(), {}))
    return [gradient for gradient, _ in model.gradients()]


control(run(2, body, torch.no_grad) == [[24.0]] * 2)
why = fails(run, 2, body, torch.inference_mode, expected="inference tensor")
conclude(why, f"a step after an evaluation in inference mode: {why}", "a step may follow an evaluation in inference mode")
