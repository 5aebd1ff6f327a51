"""eval_batch(compute_loss=False) with a monitor (csv_monitor, TensorBoard): DeepSpeed writes the mean of a loss that the first
rank does not have."""

import tempfile

import torch
from ranks import conclude, data, engine_of, fails, line, run


def body(folder, compute_loss):
    config = {"csv_monitor": {"enabled": True, "output_path": folder, "job_name": "job"}}
    engine = engine_of([line(), line()], config=config)
    engine.eval_batch(data(torch.ones(1, 1)), compute_loss=compute_loss, reduce_output="avg" if compute_loss else None)


with tempfile.TemporaryDirectory() as folder:
    run(2, lambda _: body(folder, True))  # the control
    failure = fails(run, 2, lambda _: body(folder, False), expected="no attribute 'mean'")
conclude(failure, f"an evaluation without a loss, with a monitor: {failure}", "a monitor allows evaluations without a loss")
