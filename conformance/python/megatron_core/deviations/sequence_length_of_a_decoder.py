"""decoder_seq_length, which is documented to be ignored for a model of a single stack: 1F1B receives messages of that length.
A message that is shorter leaves the rest of the buffer as it was, in which the next stage computes."""

import os
import sys

if "MALLOC_PERTURB_" not in os.environ:  # what is not received shows, every time
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_PERTURB_": "165"})

import torch  # noqa: E402
from ranks import Model, conclude, control, microbatches, run  # noqa: E402


def body(**words):
    model = Model()
    with torch.no_grad():
        inputs = microbatches(2, sequence=2)
        reports = model.train(inputs, lambda y: (y.mean(), {"loss": y.mean().item()}), forward_only=True, **words)
    return [report["loss"] for report in reports]


control(run(2, body)[1] == [1.0, 2.0])
control(run(2, body, decoder_seq_length=2)[1] == [1.0, 2.0])
there = run(2, body, decoder_seq_length=4)[1]
conclude(there != [1.0, 2.0], f"an evaluation of losses 1 and 2 with decoder_seq_length reports {there[0]:g} and {there[1]:g}",
         "decoder_seq_length is ignored for a model of a single stack")  # fmt: skip
