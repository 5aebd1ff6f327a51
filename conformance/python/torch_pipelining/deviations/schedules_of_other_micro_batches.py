"""Two schedules of the same stages one of which divides a batch into 4 and one into 2 micro-batches: the second one's shapes
replace those of the first two micro-batches of the first one, which then returns more rows, and old memory in them."""

import torch
from ranks import CLASSES, LOOPED, SINGLE, compare


def program(pipe, bug):
    pipe.build([torch.nn.Linear(1, 1, bias=False) for _ in range(2)], 4)
    for module in pipe.modules.values():
        torch.nn.init.ones_(module.weight)
    x, first = torch.ones(4, 1), pipe.schedule
    stages = first._stage if pipe.name in SINGLE else first._stages
    pipe.eval(x)
    pipe.use(CLASSES[pipe.name](stages, 2 if bug else 4))
    pipe.eval(x)
    pipe.use(first)
    output = pipe.eval(x)
    return {"rows": len(output)} if pipe.has_last else {}


compare("rows that eval() of 4 rows returns, after a schedule with other micro-batches", program, {"rows": 4},
        schedules=LOOPED,
        error="PipeliningShapeError")  # fmt: skip
