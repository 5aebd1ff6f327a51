"""A backend of plumbline: DeepSeek's DualPipe, on the CPU over gloo.

usage: adapter.py [--overlapped] describe
       adapter.py [--overlapped] plan --job J
       adapter.py [--overlapped] run --job J --out D

support.py states which cases are supported; execution.py turns a case into DualPipe's modules, batches and losses;
dualpipe_cpu.py has what DualPipe needs without a GPU. With --overlapped the modules have the method in which DualPipe's
users overlap a forward with a backward.
"""

import argparse
import importlib.metadata
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from plumbline_case.torch_distributed import GlooBackend  # noqa: E402
from support import why_not  # noqa: E402

# What DualPipe leaves to its user: this adapter does it, so these cases test it together with DualPipe.
HELP = (
    "gradients of the two replicas, and of shared parameters, summed and divided by the adapter",
    "losses divided, added and scaled in the adapter's loss function",
    "random numbers of a stage looked up by its module, which counts its forwards",
    "values for stages after the next one forwarded by the adapter's modules",
    "losses of early stages backpropagated by an autograd function in the stage",
    "gradients unscaled and clipped by the adapter",
)


class DualPipe(GlooBackend):
    version = importlib.metadata.version("dualpipe")
    imports = ("dualpipe",)
    schedules = ("dualpipe",)
    order = "own"
    extras = ("loss_parameters",)
    givens = ("several_targets",)
    delivers = (
        "forward", "backward", "input-grad", "output", "loss", "grad", "grad-norm", "buffer", "param",
        "optimizer-state", "hook-calls",
    )  # fmt: skip
    features = HELP

    def __init__(self, overlapped):
        self.name, self.overlapped = f"DualPipe ({'overlapped' if overlapped else 'plain'} modules)", overlapped

    def why_not(self, case):
        return why_not(case)

    def prepare(self, case):
        from execution import Execution

        return Execution(case.folder, self.overlapped, self.delivers)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="adapter.py", description=__doc__.splitlines()[0], add_help=False)
    parser.add_argument("--overlapped", action="store_true", help="modules with overlaped_forward_backward")
    options, verb = parser.parse_known_args()
    DualPipe(options.overlapped).main(verb)
