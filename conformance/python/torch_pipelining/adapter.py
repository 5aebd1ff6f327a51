"""A backend of plumbline: PyTorch's own torch.distributed.pipelining, on the CPU over gloo, or on GPUs over NCCL.

usage: adapter.py [--stages manual|static|traced] [--alone] [--reentrant] [--device cpu|cuda] describe
       adapter.py [--stages ...] [--alone] [--reentrant] plan --job J
       adapter.py [--stages ...] [--alone] [--reentrant] run --job J --out D
       adapter.py [--stages ...] [--alone] [--reentrant] prove --corpus DIR     (docs/proof.md, Engines under test)

`run` starts its ranks itself, or under torchrun or mpirun is one of them (plumbline_case/torch_distributed/gloo.py).
support.py states which cases are supported; execution.py turns a case into stages and a schedule. With --alone the cases
in which the adapter does a user's work run without that help (help.py). Stages that are recomputed are checkpoints that are
not reentrant; with --reentrant they are reentrant ones, and no other case runs. replicas.py has data-parallel replicas.
"""

import argparse
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

from help import helps, why_not_alone  # noqa: E402
from plumbline_case.torch_distributed import GlooBackend  # noqa: E402
from support import Files, why_not, why_not_reentrant, why_not_replicated  # noqa: E402

TRACED = ("output", "loss", "grad", "grad-norm", "buffer", "param", "optimizer-state", "hook-calls", "accumulated")
MODULES = ("forward", "backward", "input-grad", *TRACED)
DELIVERS = {"manual": MODULES, "static": MODULES, "traced": TRACED}


class Pipelining(GlooBackend):
    version = GlooBackend.libtorch
    imports = ("torch.distributed.pipelining", "torch.utils.checkpoint")

    replicas = shards_parameters = True
    extras = ("accumulation_hooks", "loss_parameters", "weight_closures")
    givens = ("divided", "whole_gradients", "some_gradients", "several_targets")

    def __init__(self, stages, alone, reentrant, device):
        self.features = ["none of the help that the adapter without --alone gives"] if alone else helps(stages == "traced")
        self.name = f"torch.distributed.pipelining ({stages}{', reentrantly recomputed' if reentrant else ''} stages{', alone' if alone else ''})"
        self.stages, self.alone, self.reentrant, self.delivers = stages, alone, reentrant, DELIVERS[stages]
        self.device = device

    def why_not(self, case):
        parts, traced = [Files(case.of_replica(number)) for number in range(case.replicas)], self.stages == "traced"
        reasons = [why_not(files, self.version, traced) for files in parts] + [why_not_replicated(case, self.version, self.stages)]
        reasons += [why_not_reentrant(parts[0])] if self.reentrant else []
        reasons += [why_not_alone(parts[0], self.version)] if self.alone else []
        return next(filter(None, reasons), None)

    def prepare(self, case):
        from execution import Execution

        return Execution(case.folder, self)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="adapter.py", description=__doc__.splitlines()[0], add_help=False)
    parser.add_argument("--stages", choices=DELIVERS, default="manual", help="how PyTorch's stages are built")
    parser.add_argument("--alone", action="store_true", help="only cases in which the adapter helps, without that help")
    parser.add_argument("--reentrant", action="store_true", help="only cases that recompute, by reentrant checkpoints")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where the stages compute")
    options, verb = parser.parse_known_args()
    Pipelining(options.stages, options.alone, options.reentrant, options.device).main(verb)
