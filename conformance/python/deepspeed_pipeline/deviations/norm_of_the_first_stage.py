"""gradient_clipping in 32 bits: the norm over all gradients has those of the first stage only, so that it clips too little, or
not at all, when the larger gradients are in later stages."""

import torch
from ranks import conclude, data, engine_of, fail, line, run


def body(rank, clip):
    layers = [line(4.0), line(3.0)]  # y = 12 x: gradients 3 and 4, whose norm is 5
    engine_of(layers, config={"gradient_clipping": clip}).train_batch(data(torch.ones(1, 1)))
    return (4.0, 3.0)[rank] - layers[rank].weight.item()


control = run(2, lambda rank: body(rank, 100.0))
if control != [3, 4]:
    fail(f"without clipping the gradients are {control}; expected 3 and 4")
gradients = run(2, lambda rank: body(rank, 1.0))
norm = sum(g * g for g in gradients) ** 0.5
conclude(norm > 1.001, f"gradients 3 and 4 of two stages, clipped to a norm of 1, have a norm of {norm:.3f}",
         "gradients of two stages are clipped by their norm")  # fmt: skip
