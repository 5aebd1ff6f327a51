"""overlap_param_gather, and an evaluation between a step and the optimizer's update: the evaluation gathers parameters, and
the next step does not, though they have changed: each replica computes with the others' old ones."""

import torch
from ranks import Model, conclude, control, microbatches, parallel_state, run


def update(model):
    """Each replica adds 1 to its own share of the parameters, as the distributed optimizer changes no other."""
    replicas, replica = parallel_state.get_data_parallel_world_size(), parallel_state.get_data_parallel_rank()
    for group in model.bucket_groups:
        for bucket in group.buckets:
            bucket.param_data.chunk(replicas)[replica].add_(1)


def body(evaluates):
    model = Model(ddp={"overlap_grad_reduce": True, "use_distributed_optimizer": True, "overlap_param_gather": True})
    model.config.no_sync_func = model.model[0].no_sync

    def loss(y):
        return y.sum(), {"loss": y.sum().item()}

    model.train(microbatches(2), loss)
    if evaluates:
        with torch.no_grad():
            model.train(microbatches(2), loss, forward_only=True)
    update(model.model[0])
    model.model[0].zero_grad_buffer()
    return [report["loss"] for report in model.train(microbatches(2), loss)]


right = [112.0, 176.0]  # 2 * (2 * x + 1) + 1
control(run(2, body, evaluates=False, replicas=2)[2:] == [right] * 2)
there = run(2, body, evaluates=True, replicas=2)[2:]
conclude(there != [right] * 2,
         f"with an evaluation before the update two replicas have the losses {there[0]} and {there[1]} for {right}",
         "with an evaluation before the update replicas have the same losses")  # fmt: skip
