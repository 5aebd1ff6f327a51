"""A backend of plumbline: the pipeline schedules of Megatron-core, on the CPU over gloo.

usage: adapter.py [--messages batched|overlapped] describe
       adapter.py [--messages ...] plan --job J
       adapter.py [--messages ...] run --job J --out D

`run` starts its ranks itself, or under torchrun or mpirun is one of them (plumbline_case/torch_distributed/gloo.py).
support.py states which cases are supported; execution.py turns a case into a model of Megatron-core; megatron_cpu.py is
all that makes Megatron-core run without a GPU.
"""

import argparse
import importlib.metadata
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from plumbline_case.torch_distributed import GlooBackend  # noqa: E402
from support import why_not  # noqa: E402

MESSAGES = {
    "batched": "batch_p2p_comm: the messages of a moment in one batch; deallocate_pipeline_outputs",
    "overlapped": "single messages, overlap_p2p_comm under interleaved 1F1B; no deallocate_pipeline_outputs",
}
# What Megatron-core leaves to its user: this adapter does it, so these cases test it together with Megatron-core.
HELP = (
    "activations sent as the [sequence, batch, hidden] that Megatron-core knows",
    "gradients of a single replica accumulated outside of .grad, as its DistributedDataParallel does for several",
    "a parameter that got no gradient told apart from one with a gradient of zeros",
    "gradients of shared parameters summed by the adapter, but for a weight of the first and the last stage",
    "gradients between stages delivered as those of an undivided loss: Megatron-core divides the loss first",
    "losses divided and weighed in the loss function; token means through calculate_per_token_loss",
    "losses of early stages through MoEAuxLossAutoScaler",
    "gradients unscaled by the adapter; norm and clipping by megatron.core.optimizer.clip_grads",
    "steps skipped by all ranks if a gradient of one is not finite",
)


class Megatron(GlooBackend):
    version = importlib.metadata.version("megatron-core")
    schedules = ("1f1b", "interleaved-1f1b")
    order = "own"
    extras = ("loss_parameters",)
    givens = ("several_targets",)
    delivers = (
        "forward", "backward", "output", "loss", "input-grad", "grad", "grad-norm", "hook-calls", "buffer", "param",
        "optimizer-state",
    )  # fmt: skip
    replicas = counts_replicas_first = True
    imports = ("megatron.core.pipeline_parallel", "megatron.core.optimizer.clip_grads")

    def __init__(self, messages):
        self.name, self.messages = f"Megatron-core ({messages} messages)", messages
        self.features = (MESSAGES[messages], *HELP)

    def why_not(self, case):
        return why_not(case)

    def prepare(self, case):
        from execution import Execution

        return Execution(case.folder, self.messages, self.delivers, self.timeout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="adapter.py", description=__doc__.splitlines()[0], add_help=False)
    parser.add_argument("--messages", choices=MESSAGES, default="batched", help="how ranks send")
    options, verb = parser.parse_known_args()
    Megatron(options.messages).main(verb)
