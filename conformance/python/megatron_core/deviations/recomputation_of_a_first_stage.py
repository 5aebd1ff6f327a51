"""tensor_parallel.checkpoint() of a stage whose input requires no gradient, the first one with frozen embeddings: its
parameters get none. PyTorch's, of which it is a copy, warns."""

from ranks import Model, checkpoint, conclude, control, microbatches, run


def body(recomputes):
    model = Model()
    for layer in model.layers:
        if recomputes:

            def forward(x, layer=layer):
                return checkpoint(lambda given: given * layer.weight + layer.bias, x if layer.pre_process else layer.received)

            layer.forward = forward
    model.train(microbatches(2), lambda y: (y.sum(), {}))
    return [gradient for gradient, _ in model.gradients()]


right = [[24.0]] * 2
control(run(2, body, recomputes=False) == right)
there = run(2, body, recomputes=True)
conclude(there != right, f"a gradient of 24 of the first stage is {there[0][0]:g} with recomputation",
         "recomputation gives the same gradients")  # fmt: skip
