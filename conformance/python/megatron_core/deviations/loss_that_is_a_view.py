"""deallocate_pipeline_outputs, which Megatron-LM always sets, and a loss that is a view, such as one element of a longer
tensor: the last stage, which sends nothing, frees the loss as if it were an output, and asserts that it is no view."""

from ranks import Model, conclude, control, fails, microbatches, run


def body(view):
    def loss(y):
        total = y.sum()
        return (total.reshape(1)[0] if view else total), {"loss": total.item()}

    reports = Model(deallocate_pipeline_outputs=True).train(microbatches(2), loss)
    return [report["loss"] for report in reports]


control(run(2, body, view=False)[1] == [16.0, 32.0])
why = fails(run, 2, body, view=True, expected="counter-productive to free a view")
conclude(why, f"a loss that is a view: {why}", "a loss may be a view")
