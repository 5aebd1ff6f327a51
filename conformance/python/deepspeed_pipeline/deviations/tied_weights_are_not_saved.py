"""A tied layer whose first TiedLayerSpec has a forward_fn: a checkpoint has no file for it, and what the other one saved is
overwritten after loading by the first stage's weights."""

import tempfile

import torch
from deepspeed.pipe import TiedLayerSpec
from ranks import conclude, data, engine_of, fail, run


class Line(torch.nn.Linear):
    def __init__(self, weight):
        super().__init__(1, 1, bias=False)
        torch.nn.init.constant_(self.weight, weight)


def body(first, weight, folder, saves):
    """This stage's weight. `first`: whether the first layer has the forward_fn, else the last."""
    forward = lambda module, x: module(x)
    layers = [TiedLayerSpec("tied", Line, weight, forward_fn=forward if has else None) for has in (first, not first)]
    engine = engine_of(layers, optimizer=lambda groups: torch.optim.SGD(groups, lr=0.0))
    if saves:
        engine.train_batch(data(torch.ones(1, 1)))
        engine.save_checkpoint(folder)
    else:
        engine.load_checkpoint(folder)
    return engine.module.tied_modules["tied"].weight.item()


def loaded(first):
    with tempfile.TemporaryDirectory() as folder:
        run(2, lambda _: body(first, 2.0, folder, True))
        return run(2, lambda _: body(first, 5.0, folder, False))


control = loaded(first=False)
if control != [2, 2]:
    fail(f"a weight of 2 is {control} after loading, with the forward_fn at the last layer")
found = loaded(first=True)
conclude(found != [2, 2], f"a tied weight of 2 is {found} after the checkpoint is loaded", "a tied weight is in the checkpoint")
