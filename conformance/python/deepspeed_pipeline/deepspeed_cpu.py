"""DeepSpeed for a process group over gloo that exists: what its launcher does, without a GPU."""

import logging
import os

os.environ["DS_ACCELERATOR"] = "cpu"  # read by the import; on a machine with a GPU it would take that

import deepspeed  # noqa: E402
import torch  # noqa: E402

SHM_COLLECTIVE = "deepspeed_shm_comm"


class Unchanged(torch.optim.Optimizer):
    """For gradients alone: DeepSpeed wants an optimizer, and drops the gradients after its step."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    def step(self, closure=None):
        pass


def set_up(rank):
    os.environ["LOCAL_RANK"] = str(rank)
    # It would compile a collective for inference, which no training uses: 50 s at the first time.
    deepspeed.ops.__compatible_ops__[SHM_COLLECTIVE] = False
    deepspeed.utils.logger.setLevel(logging.WARNING)  # it logs its whole configuration
    deepspeed.init_distributed("gloo", verbose=False)
