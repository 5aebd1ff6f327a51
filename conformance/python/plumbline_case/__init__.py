"""Cases of plumbline for Python backends: conformance/INTERPRETING.md is the contract.

    from plumbline_case import Backend, Results
    class Mine(Backend): ...                         # plumbline_case.backend says what it needs

    from plumbline_case import load
    case = load("cases/exact-mlp-sum/1f1b-4")        # its data as NumPy arrays
    x = case.inputs(step=0, microbatch=0)

plumbline_case.torch has the same with tensors of torch, and stages as nn.Modules. On the command line: plumbline-case.
"""

from .backend import Backend
from .case import Case, load
from .results import Results, key
from .schema import FormatError
from .tensors import bf16_to_f32, f32_to_bf16, read_tensors, write_tensors

__all__ = [
    "Backend",
    "Case",
    "FormatError",
    "Results",
    "bf16_to_f32",
    "f32_to_bf16",
    "key",
    "load",
    "read_tensors",
    "write_tensors",
]
