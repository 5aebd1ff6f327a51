"""autocast_dtype is documented to be pipeline_dtype unless given; it is params_dtype. For float32 parameters and a pipeline in
bfloat16, enable_autocast changes nothing."""

import torch
from ranks import Model, conclude, control, microbatches, run

WORD = torch.autocast


def body(**words):
    torch.autocast = lambda _, **words: WORD("cpu", **words)  # the schedule names "cuda"
    model, types = Model(pipeline_dtype=torch.bfloat16, enable_autocast=True, **words), []
    for layer in model.layers:
        layer.after = lambda y: types.append((y @ torch.ones(8, 8)).dtype) or y
    model.train(microbatches(1), lambda y: (y.sum(), {}))
    return str(types[0])


control(run(1, body, autocast_dtype=torch.bfloat16) == ["torch.bfloat16"])
(there,) = run(1, body)
conclude(there != "torch.bfloat16", f"enable_autocast in a pipeline of bfloat16 computes in {there}",
         "enable_autocast computes in the type of the pipeline")  # fmt: skip
