"""torch_autocast with activation_checkpoint_interval: the forward runs under autocast, the recomputation in the backward does
not, so that gradients are those of other activations. (A stage that receives values of 16 bits fails, if it is checkpointed.)"""

import torch
from ranks import conclude, data, engine_of, fail, line, run


class Threshold(torch.nn.Module):
    """relu(w x - 1): for w = 1 and x = 1.001 it is 0 in bfloat16, where x is 1."""

    def __init__(self):
        super().__init__()
        self.layer = line()

    def forward(self, x):
        return torch.relu(self.layer(x) - 1)


def body(interval):
    config = {"torch_autocast": {"enabled": True, "dtype": "bfloat16"}, "pipeline": {"activation_checkpoint_interval": interval}}
    first = Threshold()
    engine = engine_of([first, line()], config=config, checkpointable_layers=["Threshold"])
    engine.train_batch(data(torch.full((1, 1), 1.001)))
    return 1 - first.layer.weight.item()  # the gradient: the learning rate is 1


control, found = (run(2, lambda _, n=interval: body(n))[0] for interval in (0, 1))
if control != 0:
    fail(f"without checkpoints the gradient is {control}; expected 0, since the output is 0")
conclude(found != 0, f"the gradient of an output of 0 is {found:.3f}, since it is recomputed in 32 bits",
         "the recomputation is under autocast, too")  # fmt: skip
