"""eval_batch(return_logits=True) with several micro-batches returns the outputs of the last one only."""

import torch
from ranks import conclude, data, engine_of, fail, line, run


def body(micro_batches):
    inputs = [torch.full((1, 1), float(m)) for m in range(micro_batches)]
    returned = engine_of([line(), line()], micro_batches).eval_batch(data(*inputs), return_logits=True)
    return returned[1].flatten().tolist() if returned[1] is not None else None


control = run(2, lambda _: body(1))[1]
if control != [0]:
    fail(f"of one micro-batch the outputs are {control}; expected 0")
found = run(2, lambda _: body(3))[1]
conclude(found != [0, 1, 2], f"the outputs of micro-batches 0, 1 and 2 are {found}", "the outputs of all micro-batches return")
