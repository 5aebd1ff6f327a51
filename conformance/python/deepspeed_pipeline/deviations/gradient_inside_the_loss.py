"""A loss function that itself calls torch.autograd.grad(), as for adaptive weights or a gradient penalty: DeepSpeed's hook at
the outputs of the last stage takes it for a backward of the user's and rejects it."""

import torch
from ranks import conclude, data, engine_of, fails, line, run


def body(adaptive):
    last = line()

    def loss(y, _):
        plain = y.mean()
        if not adaptive:
            return plain
        (gradient,) = torch.autograd.grad(plain, last.weight, retain_graph=True)
        return plain / gradient.norm()

    engine_of([line(), last], loss_fn=loss).train_batch(data(torch.ones(1, 1)))


run(2, lambda _: body(False))  # the control
failure = fails(run, 2, lambda _: body(True), expected="Direct calls to tensor.backward()")
conclude(failure, f"a loss function with torch.autograd.grad(): {failure}", "a loss function may take gradients")
