"""force_all_reduce, which shall give every data-parallel replica the fully reduced gradients in one step: with
overlap_grad_reduce it counts in the first step only. In later ones each replica has its own shard reduced."""

from ranks import Model, conclude, control, microbatches, parallel_state, run


def body(steps):
    model = Model(ddp={"overlap_grad_reduce": True, "use_distributed_optimizer": True})
    model.config.no_sync_func = model.model[0].no_sync
    replica = parallel_state.get_data_parallel_rank()
    for _ in range(steps):
        model.model[0].zero_grad_buffer()
        model.train(microbatches(2), lambda y: ((replica + 1) * y.sum(), {}), force_all_reduce=True)
    return model.gradients()


right = [[(36.0, 24.0)]] * 4
control(run(2, body, steps=1, replicas=2) == right)
there = run(2, body, steps=2, replicas=2)
conclude(there != right, f"with force_all_reduce two replicas have the gradients 36 and 24 as {there[0][0]} and {there[1][0]}",
         "with force_all_reduce all replicas have the reduced gradients")  # fmt: skip
