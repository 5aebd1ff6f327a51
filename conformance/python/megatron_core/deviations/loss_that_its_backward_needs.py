"""The schedule divides the loss by the number of micro-batches in place. If its backward needs the loss, as that of a square
root does, autograd rejects the change: a root of mean squares is no loss, even with one micro-batch."""

from ranks import Model, conclude, control, fails, microbatches, run


def body(copies):
    def loss(y):
        root = y.square().mean().sqrt()
        return (root.clone() if copies else root), {}

    model = Model()
    model.train(microbatches(2), loss)
    return [gradient for gradient, _ in model.gradients()]


control(run(2, body, copies=True) == [[1.5]] * 2)
why = fails(run, 2, body, copies=False, expected="modified by an inplace operation")
conclude(why, f"a root of mean squares as a loss: {why}", "a root of mean squares is a loss")
