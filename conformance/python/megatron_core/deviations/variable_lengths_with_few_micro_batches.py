"""Interleaved 1F1B with variable_seq_lengths and as many micro-batches as ranks: a rank first exchanges the shapes of all
messages of a moment, in both directions, and one neighbour still waits for the values of an earlier one."""

from ranks import Failed, Model, conclude, control, microbatches, run


def body(variable, count):
    model = Model(chunks=2, variable_seq_lengths=variable)
    return [report["loss"] for report in model.train(microbatches(count), lambda y: (y.sum(), {"loss": y.sum().item()}))]


losses = [16.0 * (m + 1) for m in range(8)]
control(run(4, body, variable=False, count=4)[3] == losses[:4])
control(run(4, body, variable=True, count=8)[3] == losses)
try:
    there, hang = run(4, body, variable=True, count=4, expected="imed out")[3], ""
except Failed as failed:
    there, hang = None, failed.why.split("] ")[-1]
conclude(there != losses[:4], f"4 micro-batches of variable lengths on 4 ranks wait for each other: {hang}",
         "4 micro-batches of variable lengths on 4 ranks give the right losses")
