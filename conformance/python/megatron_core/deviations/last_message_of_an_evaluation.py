"""overlap_p2p_comm_warmup_flush, and an evaluation: nothing waits for the last send. Over gloo a message that the receiver has
not asked for by the end of the call is not sent."""

import time

import torch.distributed as dist
from ranks import Failed, Model, conclude, control, microbatches, parallel_state, run


def body(flush):
    model = Model(chunks=2, batch_p2p_comm=False, overlap_p2p_comm=True, overlap_p2p_comm_warmup_flush=flush,
                  microbatch_group_size_per_vp_stage=4)  # fmt: skip
    for layer in model.layers:
        layer.before = lambda: time.sleep(0.1 * parallel_state.get_pipeline_model_parallel_rank())
    reports = model.train(microbatches(4), lambda y: (y.sum(), {"loss": y.sum().item()}), forward_only=True)
    dist.barrier()
    return [report["loss"] for report in reports]


losses = [16.0, 32.0, 48.0, 64.0]
control(run(2, body, flush=False)[1] == losses)
try:
    there, hang = run(2, body, flush=True, expected="imed out")[1], ""
except Failed as failed:
    there, hang = None, failed.why.split("] ")[-1]
conclude(there != losses, f"the last rank waits for the last message of an evaluation: {hang}",
         "the last message of an evaluation arrives")  # fmt: skip
