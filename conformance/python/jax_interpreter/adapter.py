"""A backend of plumbline: an interpreter of the op graphs in JAX, with JAX's derivatives.

usage: adapter.py describe
       adapter.py plan --job J
       adapter.py run --job J --out D

operators/ has the operators by family, stage.py a stage as a pure function with its jax.vjp, execution.py the pipeline.
"""

import importlib.metadata
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]
# Read when JAX is imported. Doubles exist, nothing is reassociated, a product has the precision of its element type.
os.environ |= {
    "JAX_PLATFORMS": "cpu",
    "JAX_ENABLE_X64": "1",
    "JAX_DEFAULT_MATMUL_PRECISION": "highest",
    "XLA_FLAGS": "--xla_cpu_enable_fast_math=false --xla_cpu_multi_thread_eigen=false",
}

from plumbline_case import Backend  # noqa: E402
from plumbline_case.results import KINDS  # noqa: E402


class JaxInterpreter(Backend):
    name = "interpreter in JAX"
    version = importlib.metadata.version("jax")
    delivers = KINDS
    features = (
        "one process and one CPU device act as all ranks: arrays are immutable, so a value that crosses is handed on",
        "each rank executes its row of the schedule; backwards in halves are two derivatives of one forward",
        "derivatives by jax.vjp; 16-bit values are computed in F32, and rounded once by each operator",
    )
    steps = ("train", "eval", "zero_grad", "optimizer", "freeze", "unfreeze", "read")
    extras = (
        "loss_divisor", "loss_parameters", "added", "local_losses", "class_weights", "weight_decay", "loss_scale",
        "skip_nonfinite", "clip", "resumes",
    )  # fmt: skip
    givens = ("several_targets",)
    input_gradients = parameter_hooks = boundary_hooks = replicas = shards_parameters = True

    def why_not(self, case):
        from operators import OPERATORS

        self.operators = OPERATORS
        return super().why_not(case)

    def prepare(self, case):
        from execution import Execution  # JAX takes seconds, which describe need not
        from operators import forget_beyond

        forget_beyond(1000)
        return Execution(case.folder)

    def run(self, case, prepared):
        return prepared.run()


if __name__ == "__main__":
    JaxInterpreter().main()
