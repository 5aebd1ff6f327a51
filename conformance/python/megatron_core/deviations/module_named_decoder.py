"""A model chunk that has a module named "decoder": the schedule takes it for a stack of Transformer layers."""

import torch
from ranks import Model, conclude, control, fails, microbatches, run


def body(name):
    model = Model()
    for layer in model.layers:
        setattr(layer, name, torch.nn.Identity())
    return [report["loss"] for report in model.train(microbatches(2), lambda y: (y.sum(), {"loss": y.sum().item()}))]


control(run(2, body, "head")[1] == [16.0, 32.0])
why = fails(run, 2, body, "decoder", expected="has no attribute 'layers'")
conclude(why, f"a module named decoder: {why}", "a module may be named decoder")
