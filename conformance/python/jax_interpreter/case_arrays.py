"""A case with arrays that JAX takes."""

import ml_dtypes
import numpy as np
from plumbline_case import case
from plumbline_case.results import Results
from plumbline_case.tensors import read_stored


def of_stored(stored):
    return stored.array.view(ml_dtypes.bfloat16) if stored.dtype == "BF16" else stored.array


class Case(case.Case):
    """plumbline_case.Case with bfloat16 numbers in place of their bits."""

    @staticmethod
    def read_tensors(path):
        return {name: of_stored(stored) for name, stored in read_stored(path).items()}


class Recorder:
    """The results of each rank: {rank: Results}."""

    def __init__(self, ranks):
        self.of_rank = [Results() for _ in range(ranks)]

    def put(self, rank, step, kind, stage, microbatch, name, array):
        array = np.asarray(array)
        if np.iscomplexobj(array):  # the gradients of JAX are the conjugates of those of the contract
            array = np.stack([array.real, -array.imag if kind == "backward" else array.imag], axis=-1)
        bits = array.view(np.uint16) if array.dtype == ml_dtypes.bfloat16 else array
        self.of_rank[rank].put(step, kind, stage, microbatch, name, bits)
