"""With activation_checkpoint_interval a layer that is given a tuple of one tensor gets the tensor: `inputs[0]` is then its
first row, and the loss that of this row."""

import torch
from ranks import conclude, data, engine_of, fail, line, run


class Gives(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = line()

    def forward(self, x):
        return (self.layer(x),)


class Takes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = line()

    def forward(self, inputs):
        return self.layer(inputs[0])


def body(interval):
    config = {"pipeline": {"activation_checkpoint_interval": interval}}
    engine = engine_of([Gives(), Takes(), line(), line()], config=config)
    return engine.train_batch(data(torch.tensor([[1.0], [3.0]]))).item()


control, found = (run(2, lambda _, n=interval: body(n))[0] for interval in (0, 1))
if control != 2:
    fail(f"without checkpoints the loss is {control}; expected 2")
conclude(found != 2, f"the loss of the rows 1 and 3 is {found}: a layer got the tensor in place of its tuple of one",
         "a layer gets its tuple of one")  # fmt: skip
