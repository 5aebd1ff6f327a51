"""finalize_model_grads sums the gradients of embedders that every stage has a copy of (has_cond_embedder) in place: if two
steps accumulate, the sum of the first step is on all stages, and is added up again."""

from ranks import Model, conclude, control, microbatches, run


def body(steps):
    model = Model()
    model.config.has_cond_embedder = True
    for layer in model.layers:
        layer.weight.pipeline_parallel = True
    for _ in range(steps):
        model.train(microbatches(2), lambda y: (y.sum(), {}))
    return [gradient for gradient, _ in model.gradients()]


once = [gradient for (gradient,) in run(2, body, steps=1)]
control(once == [48.0, 48.0])
twice = [gradient for (gradient,) in run(2, body, steps=2)]
conclude(twice != [96.0, 96.0], f"two steps of gradient 48 accumulate to {twice[0]:g} on both stages of an embedder",
         "two steps of gradient 48 accumulate to 96")  # fmt: skip
