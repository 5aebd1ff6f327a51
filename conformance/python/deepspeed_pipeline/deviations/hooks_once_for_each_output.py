"""A stage with two outputs: DeepSpeed runs its backward once for each of them, so that a hook on a parameter or on a received
value sees a part of its gradient at a time. A hook that is not linear, such as one that clips, gives another gradient."""

import torch
from ranks import conclude, data, engine_of, fail, line, run


class First(torch.nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.layer, self.outputs, self.seen = line(), outputs, []
        self.layer.weight.register_hook(lambda gradient: self.seen.append(gradient.item()))

    def forward(self, x):
        y = self.layer(x)
        return (y, y * 2) if self.outputs == 2 else y * 3


class Second(torch.nn.Module):
    def forward(self, given):
        return given[0] + given[1] if isinstance(given, tuple) else given


def body(outputs):
    first = First(outputs)
    engine_of([first, Second()]).train_batch(data(torch.ones(1, 1)))
    return first.seen


if (control := run(2, lambda _: body(1))[0]) != [3]:
    fail(f"with one output a hook sees {control}; expected [3]")
seen = run(2, lambda _: body(2))[0]
conclude(seen != [3], f"a hook on a parameter with gradient 3 sees {seen} in one backward of a stage with two outputs",
         "a hook sees a gradient once and whole")  # fmt: skip
