"""A backend of plumbline: DeepSpeed's PipelineEngine, on the CPU over gloo.

usage: adapter.py describe
       adapter.py plan --job J
       adapter.py run --job J --out D

`run` starts its ranks itself, or under torchrun or mpirun is one of them (plumbline_case/torch_distributed/gloo.py).
support.py states which cases are supported; engine.py makes an engine of a case, execution.py executes its steps.
"""

import importlib.metadata
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from plumbline_case.torch_distributed import GlooBackend  # noqa: E402
from support import why_not  # noqa: E402

# What DeepSpeed leaves to its user, or lacks: this adapter does it, so these cases test it together with DeepSpeed.
HELP = (
    "values for a stage after the next one handed on by each stage in between",
    "losses divided, weighted and added in the adapter's loss function; the weight travels with the labels",
    "losses multiplied by the number of micro-batches where the case does not divide, since DeepSpeed always does",
    "losses of early stages backpropagated by an autograd function in the stage",
    "an optimizer that changes nothing where a train step has no optimizer step after it",
    "masks of random layers taken by the layer itself",
    "losses multiplied by the number of replicas where the case has their sum, since DeepSpeed averages over them",
)


class PipelineEngine(GlooBackend):
    name, version = "DeepSpeed PipelineEngine", importlib.metadata.version("deepspeed")
    imports = ("deepspeed.pipe",)
    schedules, order = ["1f1b"], "own"
    extras = ("loss_parameters",)
    givens = ("several_targets",)
    delivers = (
        "forward", "output", "loss", "backward", "hook-calls", "grad", "grad-norm", "buffer", "param", "optimizer-state",
    )  # fmt: skip
    features = HELP
    replicas = counts_replicas_first = True

    def why_not(self, case):
        return why_not(case)

    def prepare(self, case):
        from execution import Execution
        from plumbline_case.torch import load

        return Execution(load(case.folder), set(self.delivers))


if __name__ == "__main__":
    PipelineEngine().main()
