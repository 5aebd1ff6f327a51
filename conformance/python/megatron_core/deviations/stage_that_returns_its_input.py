"""deallocate_pipeline_outputs, which Megatron-LM always sets, and a stage that returns what it is given (one without layers):
what is freed is its input as well, so that the gradient that it sends back has one element."""

import os
import sys

if "MALLOC_PERTURB_" not in os.environ:  # what is not received shows, every time
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_PERTURB_": "165"})

from ranks import Model, conclude, control, microbatches, run  # noqa: E402


def body(deallocate):
    model = Model(deallocate_pipeline_outputs=deallocate)
    for layer in model.layers:
        if not layer.pre_process and not layer.post_process:
            layer.forward = lambda x, layer=layer: layer.received
    model.train(microbatches(2), lambda y: (y.sum(), {}))
    return [gradient for gradient, _ in model.gradients()]


right = [[24.0], [0.0], [24.0]]
control(run(3, body, deallocate=False) == right)
there = run(3, body, deallocate=True)
conclude(there != right, f"before a stage that returns its input, a gradient of 24 is {there[0][0]:g}",
         "a stage may return its input")  # fmt: skip
