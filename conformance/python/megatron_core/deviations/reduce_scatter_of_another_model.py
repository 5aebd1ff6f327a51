"""reduce_scatter_with_fp32_accumulation of one model becomes the reduce-scatter of every model of the process. One without
that option and with overlap_grad_reduce drops the handle whose wait() adds up: its gradients are not reduced."""

from ranks import Model, conclude, control, microbatches, parallel_state, run


def body(other):
    options = {"use_distributed_optimizer": True, "overlap_grad_reduce": True}
    if other:
        Model(ddp={**options, "reduce_scatter_with_fp32_accumulation": True})
    model = Model(ddp=options)
    model.config.no_sync_func = model.model[0].no_sync
    replica = parallel_state.get_data_parallel_rank()
    model.train(microbatches(2), lambda y: ((replica + 1) * y.sum(), {}))
    ((weight, bias),) = model.gradients()
    return weight if replica else bias  # of its own shard


right = [24.0, 36.0] * 2
control(run(2, body, other=False, replicas=2) == right)
there = run(2, body, other=True, replicas=2)
conclude(there != right,
         f"beside another model with that option the gradients of a stage are {there[0]:g} and {there[1]:g} for 24 and 36",
         "another model's options change nothing")  # fmt: skip
