"""A backend of plumbline: PyTorch's own torch.distributed.pipelining, on the CPU over gloo.

usage: adapter.py [--stages manual|static|traced] describe
       adapter.py [--stages ...] plan --job J
       adapter.py [--stages ...] run --job J --out D

`run` starts its ranks itself, or under torchrun or mpirun is one of them (plumbline_case/torch_distributed/gloo.py).
support.py states which cases are supported; execution.py turns a case into stages and a schedule.
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from plumbline_case.torch_distributed import GlooBackend  # noqa: E402
from support import Files, why_not  # noqa: E402

TRACED = ("output", "loss", "grad", "grad-norm", "buffer", "param", "optimizer-state", "hook-calls")
MODULES = ("forward", "backward", "input-grad", *TRACED)
DELIVERS = {"manual": MODULES, "static": MODULES, "traced": TRACED}
# What PyTorch's pipelining leaves to its user: this adapter does it, so these cases test it together with PyTorch.
HELP = (
    "gradients of shared parameters summed by the adapter",
    "losses divided, added and scaled in the adapter's loss function",
    "gradients unscaled, and clipped by a norm that the adapter reduces over ranks",
    "steps skipped by all ranks if a gradient of one is not finite",
)
LOCAL = "losses of early stages backpropagated by an autograd function in the stage"


class Pipelining(GlooBackend):
    version = GlooBackend.libtorch
    imports = ("torch.distributed.pipelining",)

    def __init__(self, stages):
        self.features = HELP if stages == "traced" else (*HELP, LOCAL)
        self.name, self.stages, self.delivers = f"torch.distributed.pipelining ({stages} stages)", stages, DELIVERS[stages]

    def why_not(self, case):
        return why_not(Files(case.folder), self.version, self.stages == "traced")

    def prepare(self, case):
        from execution import Execution

        return Execution(case.folder, self.stages, self.delivers)

    def run(self, case, prepared):
        prepared.run()
        return prepared.recorder.results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="adapter.py", description=__doc__.splitlines()[0], add_help=False)
    parser.add_argument("--stages", choices=DELIVERS, default="manual", help="how PyTorch's stages are built")
    options, verb = parser.parse_known_args()
    Pipelining(options.stages).main(verb)
