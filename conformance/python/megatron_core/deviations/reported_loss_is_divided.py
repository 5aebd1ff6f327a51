"""The schedule divides the loss by the number of micro-batches in place: a loss function that reports loss.detach(), which
has the same memory, reports a divided loss."""

from ranks import Model, conclude, control, microbatches, run


def body(copies):
    def loss(y):
        total = y.sum()
        return total, {"loss": total.detach().clone() if copies else total.detach()}

    return [report["loss"].item() for report in Model().train(microbatches(4), loss)]


losses = [16.0, 32.0, 48.0, 64.0]
control(run(2, body, copies=True)[1] == losses)
there = run(2, body, copies=False)[1]
conclude(there != losses, f"the losses of four micro-batches are {losses}, and loss.detach() reports {there}",
         "loss.detach() reports the losses")  # fmt: skip
