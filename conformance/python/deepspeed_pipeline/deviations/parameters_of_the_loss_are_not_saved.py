"""A loss function with parameters, a torch.nn.Module: DeepSpeed trains them, but its checkpoints have layers only, and loading
one says nothing."""

import tempfile

import torch
from ranks import ScaledMean, conclude, data, engine_of, fail, line, run


def body(rank, folder, saves):
    """The weight of this stage, and the parameter of the loss."""
    layers, loss = [line(), line()], ScaledMean()
    engine = engine_of(layers, loss_fn=loss, optimizer=lambda groups: torch.optim.SGD(groups, lr=0.25))
    if saves:
        engine.train_batch(data(torch.ones(1, 1)))
        engine.save_checkpoint(folder)
    else:
        engine.load_checkpoint(folder)
    return layers[rank].weight.item(), loss.scale.item()


with tempfile.TemporaryDirectory() as folder:
    _, (weight, scale) = run(2, lambda rank: body(rank, folder, True))
    _, (loaded, found) = run(2, lambda rank: body(rank, folder, False))
if (weight, scale, loaded) != (0.75, 0.75, 0.75):
    fail(f"a layer's weight and the loss's of {weight} and {scale} are saved, and the former is {loaded} again; expected 0.75")
conclude(found != scale, f"the loss's parameter of {scale} is {found} after the checkpoint is loaded",
         "the loss's parameter is in the checkpoint")  # fmt: skip
