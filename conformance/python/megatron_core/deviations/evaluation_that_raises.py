"""Interleaved 1F1B takes grad_sync_func and param_sync_func out of the configuration for an evaluation, and puts them back at
its end. If its loss function raises, which the user catches, they are gone: later steps call neither."""

from ranks import Model, conclude, control, microbatches, run


def body(raises):
    model, calls = Model(chunks=2, batch_p2p_comm=False, overlap_p2p_comm=True), []
    model.config.grad_sync_func = lambda parameters: calls.append(len(list(parameters)))

    def loss(y):
        if raises and y.flatten()[0] == 4:
            raise ValueError("of the last micro-batch")
        return y.sum(), {}

    try:
        model.train(microbatches(4), loss, forward_only=True)
    except ValueError:
        pass
    raises = False
    model.train(microbatches(4), loss)
    return len(calls)


control(run(2, body, raises=False) == [2, 2])
there = run(2, body, raises=True)
conclude(there != [2, 2], f"after an evaluation that raises, grad_sync_func is called {there[1]} times for 2 on the last rank",
         "after an evaluation that raises, grad_sync_func is called")  # fmt: skip
