"""partition_method="type:[regex]" ends the expression at a colon, so that one with a group such as (?:a|b) is cut."""

import torch
from deepspeed.pipe import PipelineModule
from ranks import conclude, fails, line, run


def body(expression):
    module = PipelineModule([line(), torch.nn.Conv1d(1, 1, 1)], num_stages=2, partition_method=f"type:{expression}")
    return module.parts


run(2, lambda _: body("^(linear|conv)"))  # the control
failure = fails(run, 2, lambda _: body("^(?:linear|conv)"), expected="position")
conclude(failure, f"a regular expression with a colon: {failure}", "a regular expression may have a colon")
