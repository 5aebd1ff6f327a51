"""A stage's output that is not contiguous is sent as it is: gloo, as NCCL, refuses it."""

from ranks import Model, conclude, control, fails, microbatches, run


def body(change):
    model = Model()
    for layer in model.layers:
        layer.after = change
    reports = model.train(microbatches(2, sequence=2), lambda y: (y.sum(), {"loss": y.sum().item()}))
    return [report["loss"] for report in reports]


def with_other_strides(y):
    return y.transpose(0, 1).contiguous().transpose(0, 1)


control(run(2, body, lambda y: y)[1] == [32.0, 64.0])
why = fails(run, 2, body, with_other_strides, expected="contiguous")
conclude(why, f"an output with other strides: {why}", "an output with other strides is sent")
