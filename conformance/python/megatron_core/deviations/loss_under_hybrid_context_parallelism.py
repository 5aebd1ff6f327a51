"""hybrid_context_parallel calls the forward step without the size of the context-parallel group, so that
collect_non_loss_data, False, takes its place: a loss function with two results has its loss multiplied by that."""

from ranks import Model, conclude, control, get_forward_backward_func, microbatches, on_cpu, run


def body(hybrid):
    model, samples = Model(hybrid_context_parallel=hybrid), [{"x": x} for x in microbatches(2)]
    data = iter([(samples, [[[0, 1]]])] if hybrid else samples)  # one group, in which this rank has both

    def loss(y):
        return y.sum(), {}

    with on_cpu():
        get_forward_backward_func(1, None)(
            forward_step_func=lambda data, model: (model(next(data)["x"]), loss), data_iterator=data, model=model.model,
            num_microbatches=2, seq_length=1, micro_batch_size=2)  # fmt: skip
    return [gradient for gradient, _ in model.gradients()]


control(run(1, body, hybrid=False) == [[24.0]])
there = run(1, body, hybrid=True)
conclude(there != [[24.0]], f"a gradient of 24 is {there[0][0]:g} with hybrid_context_parallel",
         "hybrid_context_parallel gives the same gradient")  # fmt: skip
