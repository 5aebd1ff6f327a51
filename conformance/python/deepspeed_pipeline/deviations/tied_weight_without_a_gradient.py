"""A tied weight that one of its stages uses without a gradient (detached): the other stage waits for it in the sum of the
gradients, and for longer than this script does."""

import torch
from deepspeed.pipe import TiedLayerSpec
from ranks import conclude, data, engine_of, fails, line, run


def body(detaches):
    use = lambda module, x: x * (module.weight.detach() if detaches else module.weight)
    tied = [TiedLayerSpec("tied", torch.nn.Linear, 1, 1, bias=False, forward_fn=fn) for fn in (None, use)]
    engine_of([tied[0], line(), line(), tied[1]]).train_batch(data(torch.ones(1, 1)))


run(2, lambda _: body(False))  # the control
failure = fails(run, 2, lambda _: body(True), expected="no answer", seconds=40)
conclude(failure, f"a tied weight that one stage detaches: {failure}", "a stage may detach a tied weight")
