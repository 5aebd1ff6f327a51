"""seed_layers, "a different seed for each layer", with activation_checkpoint_interval: the number of a layer begins anew in
each checkpointed block, so that with an interval of 1 all layers of a stage have one seed, and the same dropout masks."""

import torch
from ranks import conclude, data, engine_of, fail, line, run

ROWS = 1000


def body(interval):
    """The share of values that survive two dropout layers in a row."""
    survive = []

    def look(x):
        survive.append((x != 0).float().mean().item())
        return x

    layers = [line(), torch.nn.Dropout(0.5), torch.nn.Dropout(0.5), look, *[line() for _ in range(4)]]
    config = {"pipeline": {"activation_checkpoint_interval": interval}}
    engine_of(layers, config=config, seed_layers=True).train_batch(data(torch.ones(ROWS, 1)))
    return survive


control, found = (run(2, lambda _, n=interval: body(n))[0][0] for interval in (0, 1))
if not 0.2 < control < 0.3:
    fail(f"without checkpoints {control} of the values survive; expected a quarter")
conclude(found > 0.4, f"of two dropout layers that are checkpointed apart, {found} of the values survive, not {control}: one mask",
         "two dropout layers have different masks")  # fmt: skip
