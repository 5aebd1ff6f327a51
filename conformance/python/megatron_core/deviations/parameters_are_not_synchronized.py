"""param_sync_func, which launches the gathering of parameters: interleaved 1F1B calls it for each chunk, 1F1B never calls it.
Here it sets parameters to what another replica's optimizer is taken to have made of them."""

from ranks import Model, conclude, control, microbatches, run


def body(chunks):
    def gather(parameters):
        for parameter in parameters:
            if parameter.item() == 1:
                parameter.data.fill_(2)

    model = Model(chunks=chunks, batch_p2p_comm=not chunks, overlap_p2p_comm=bool(chunks), param_sync_func=gather)
    reports = model.train(microbatches(2), lambda y: (y.sum(), {"loss": y.sum().item()}))
    return [report["loss"] for report in reports]


control(run(2, body, chunks=2)[1] == [256.0, 512.0])
there = run(2, body, chunks=None)[1]
conclude(there != [64.0, 128.0], f"losses with the parameters of param_sync_func are [64.0, 128.0], and of 1F1B {there}",
         "1F1B synchronizes parameters")  # fmt: skip
