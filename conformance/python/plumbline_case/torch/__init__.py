"""Cases for backends that compute with torch: stages and whole models as nn.Modules.

    from plumbline_case.torch import Results, load
    case = load("cases/exact-mlp-sum/1f1b-4")
    stage = case.stage(0)                            # an nn.Module
    h = stage(*case.inputs(step=0, microbatch=0))
"""

from .case import Case, load
from .modules import separate_gradients
from .tensors import Results, read_tensors, write_tensors

__all__ = ["Case", "Results", "load", "read_tensors", "separate_gradients", "write_tensors"]
