"""A naive GPipe over mpi4py and torch, checked by plumbline: the example to copy. See conformance/INTERPRETING.md.

usage: adapter.py describe | plan --job J | run --job J --out D        (run: under mpirun, a stage a rank)
"""

import importlib.metadata
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from plumbline_case import Backend  # noqa: E402


class GPipe(Backend):
    name, version, level = "GPipe on mpi4py", "1", "stage"
    schedules = ("gpipe",)
    steps = ("train", "eval", "zero_grad", "read")
    extras = ("loss_divisor", "added", "local_losses", "class_weights")
    givens = ("several_targets",)
    delivers = ("forward", "output", "loss", "backward", "grad", "buffer", "param")
    libtorch = importlib.metadata.version("torch").split("+")[0]

    def start(self, job):
        from gpipe import Rank  # torch takes seconds, which describe and plan need not

        self.make_rank = Rank

    def prepare(self, case):
        return self.make_rank(case.folder)

    def run(self, case, prepared):
        return prepared.run()


if __name__ == "__main__":
    GPipe().main()
