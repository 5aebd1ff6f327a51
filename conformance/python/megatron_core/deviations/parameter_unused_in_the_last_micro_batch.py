"""overlap_grad_reduce and a parameter that the last micro-batch does not use: the reduction of its bucket waits for that
parameter's gradient, and is never launched."""

from ranks import Model, conclude, control, fails, microbatches, parallel_state, run


def body(overlaps):
    model = Model(ddp={"overlap_grad_reduce": overlaps})
    model.config.no_sync_func = model.model[0].no_sync
    uses = True
    for layer in model.layers:

        def forward(x, layer=layer):
            x = (x if layer.pre_process else layer.received) * layer.weight
            return x + layer.bias if uses or x.flatten()[0] < 2 else x

        layer.forward = forward
    for uses in (True, False):
        model.model[0].zero_grad_buffer()
        model.train(microbatches(2), lambda y: (y.sum(), {}))
    return model.gradients()


control(run(2, body, overlaps=False, replicas=2) == [[(24.0, 8.0)]] * 4)
why = fails(run, 2, body, overlaps=True, replicas=2, expected="Communication call has not been issued")
conclude(why, f"a parameter that the last micro-batch does not use: {why}", "the last micro-batch may leave a parameter out")
