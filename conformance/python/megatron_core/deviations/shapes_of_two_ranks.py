"""Interleaved 1F1B on two ranks with single messages, without overlap, and variable_seq_lengths: values arrive, but shapes go
in batches, in which that of an activation and that of a gradient are received as each other."""

import torch
from ranks import WIDTH, Failed, Model, conclude, control, run


def body(overlaps):
    inputs = [torch.full((m + 1, 2, WIDTH), float(m + 1)) for m in range(4)]
    model = Model(chunks=2, batch_p2p_comm=False, overlap_p2p_comm=overlaps, variable_seq_lengths=True)
    return [report["loss"] for report in model.train(inputs, lambda y: (y.sum(), {"loss": y.sum().item()}))]


losses = [16.0 * (m + 1) ** 2 for m in range(4)]
control(run(2, body, overlaps=True)[1] == losses)
try:
    there, why = run(2, body, overlaps=False, expected="Aborted")[1], ""
except Failed as failed:
    there, why = None, failed.why
conclude(there != losses,
         f"micro-batches of one to four rows give the losses {there}" if there else f"micro-batches of one to four rows: {why}",
         "micro-batches of one to four rows give the right losses")  # fmt: skip
