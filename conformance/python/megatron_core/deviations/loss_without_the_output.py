"""A micro-batch whose loss does not depend on what the stage was given, such as the 0 of one whose tokens are all masked: the
last stage has no gradient to send, and sends nothing, for which the stage before waits."""

import torch
import torch.distributed as dist
from ranks import Failed, Model, conclude, control, microbatches, run


def body(depends):
    def loss(y):
        masked = y.flatten()[0] == 2
        total = (0 * y.sum() if depends else torch.zeros(())) if masked else y.sum()
        return total, {"loss": total.item()}

    reports = Model().train(microbatches(4), loss)
    dist.barrier()
    return [report["loss"] for report in reports]


losses = [16.0, 0.0, 48.0, 64.0]
control(run(2, body, depends=True)[1] == losses)
try:
    there, hang = run(2, body, depends=False, expected="imed out")[1], ""
except Failed as failed:
    there, hang = None, failed.why.split("] ")[-1]
conclude(there != losses, f"a micro-batch whose loss is a constant: the stage before waits for a gradient: {hang}",
         "a micro-batch may have a constant as its loss")  # fmt: skip
