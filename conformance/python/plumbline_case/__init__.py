"""Cases of plumbline for Python backends: conformance/INTERPRETING.md is the contract.

    from plumbline_case import Results, load
    case = load("cases/exact-mlp-sum/1f1b-4")
    stage = case.stage(0)                            # an nn.Module
    h = stage(*case.inputs(step=0, microbatch=0))
"""

from .case import Case, load
from .modules import separate_gradients
from .results import Results, key
from .schema import FormatError
from .tensors import read_tensors, write_tensors

__all__ = ["Case", "FormatError", "Results", "key", "load", "read_tensors", "separate_gradients", "write_tensors"]
