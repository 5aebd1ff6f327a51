"""Without no_sync_func the schedule does not use DistributedDataParallel.no_sync, which is documented as the default. With
overlap_grad_reduce the replicas reduce their gradients after as many micro-batches as the first step had; what later ones
add stays on each replica."""

from ranks import Model, conclude, control, microbatches, parallel_state, run


def body(given, first):
    model = Model(ddp={"overlap_grad_reduce": True})
    if given:
        model.config.no_sync_func = model.model[0].no_sync
    replica = parallel_state.get_data_parallel_rank()
    for count in (first, 4):
        model.model[0].zero_grad_buffer()
        model.train(microbatches(count), lambda y: ((replica + 1) * y.sum(), {}))
    return [gradient for gradient, _ in model.gradients()]


right = [[60.0]] * 4  # 40 of one replica and 80 of the other
control(run(2, body, given=True, first=2, replicas=2) == right)
control(run(2, body, given=False, first=4, replicas=2) == right)
there = run(2, body, given=False, first=2, replicas=2)
conclude(there != right,
         f"two micro-batches, then four: two replicas have the mean gradient 60 as {there[0][0]:g} and {there[1][0]:g}",
         "two micro-batches, then four: replicas have the same gradient")  # fmt: skip
