"""eval_batch(reduce_output=None), with a loss: DeepSpeed broadcasts the result as if it were one tensor, though it is a list."""

import torch
from ranks import conclude, data, engine_of, fails, line, run


def body(**options):
    engine_of([line(), line()]).eval_batch(data(torch.ones(1, 1)), **options)


run(2, lambda _: body(reduce_output="avg"))  # the controls
run(2, lambda _: body(reduce_output=None, bcast_loss=False))
failure = fails(run, 2, lambda _: body(reduce_output=None), expected="no attribute 'clone'")
conclude(failure, f"an evaluation whose losses are not reduced: {failure}", "losses need not be reduced")
