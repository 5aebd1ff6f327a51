"""A stage that begins with an operation in place, such as ReLU(inplace=True): it is given a receive buffer, which is a leaf
that requires a gradient."""

from ranks import Model, conclude, control, fails, microbatches, run


def body(in_place):
    model = Model()
    for layer in model.layers:
        if not layer.pre_process:
            layer.before = lambda layer=layer: layer.received.relu_() if in_place else layer.received.relu()
    return [report["loss"] for report in model.train(microbatches(2), lambda y: (y.sum(), {"loss": y.sum().item()}))]


control(run(2, body, in_place=False)[1] == [16.0, 32.0])
why = fails(run, 2, body, in_place=True, expected="leaf Variable that requires grad")
conclude(why, f"a stage that begins in place: {why}", "a stage may begin in place")
