"""The results of a backend: tensors under result keys, a file for each rank."""

import re
from typing import NamedTuple, Optional

import numpy as np

from .tensors import write_tensors

KINDS = (
    "forward", "output", "loss", "backward", "partial", "input-grad", "hook-calls", "accumulated", "grad",
    "grad-norm", "buffer", "param", "optimizer-state"
)  # fmt: skip
# In the order in which a step produces them.
PHASES = (
    ("forward", "output"),
    ("loss",),
    ("backward", "partial", "input-grad", "hook-calls", "accumulated"),
    ("grad",),
    ("grad-norm",),
    ("buffer",),
    ("param",),
    ("optimizer-state",),
)
NUMBER = "(0|[1-9][0-9]*)"
MOST = (1 << 31) - 1  # of a number in a key
KEY = re.compile(rf"{NUMBER}/({'|'.join(KINDS)})/(-|{NUMBER})/(-|{NUMBER})/(.+)", re.DOTALL)


class Key(NamedTuple):
    """Stage and micro-batch are None where they do not apply."""

    step: int
    kind: str
    stage: Optional[int]
    microbatch: Optional[int]
    name: str

    def causal_order(self):
        """Sorts keys in the order of the computation, so that the first wrong result is close to the fault."""
        last = float("inf")
        phase = next(number for number, kinds in enumerate(PHASES) if self.kind in kinds)
        stage = last if self.stage is None else self.stage
        if phase == 2 and self.stage is not None:
            stage = -stage
        microbatch = last if self.microbatch is None else self.microbatch
        return self.step, phase, microbatch, stage, KINDS.index(self.kind), self.name.encode()


def key(step, kind, stage, microbatch, name):
    """`<step>/<kind>/<stage>/<microbatch>/<name>`; None if stage or micro-batch does not apply."""
    if kind not in KINDS:
        raise ValueError(f"kind of result {kind!r}: expected one of {', '.join(KINDS)}")
    for what, given in ("step", step), ("stage", stage), ("micro-batch", microbatch):
        if not is_number(given) and (what == "step" or given is not None):
            raise ValueError(f"{what} of result {given!r}: expected a whole number from 0 on")
    number = lambda n: "-" if n is None else str(n)
    return f"{step}/{kind}/{number(stage)}/{number(microbatch)}/{name}"


def is_number(given):
    return isinstance(given, (int, np.integer)) and not isinstance(given, bool) and 0 <= given <= MOST


def parse_key(text):
    """The reverse of key(). Raises ValueError for any other text."""
    match = KEY.fullmatch(text)
    if not match or any(len(n) > len(str(MOST)) or int(n) > MOST for n in match.group(1, 4, 6) if n):
        raise ValueError(f"result key `{text}` is not <step>/<kind>/<stage>/<microbatch>/<name> (kinds: {', '.join(KINDS)})")
    number = lambda n: None if n == "-" else int(n)
    return Key(int(match[1]), match[2], number(match[3]), number(match[5]), match[7])


class Results(dict):
    """{key: array}; put() copies the present values, once for each key.

    The element type of the array is the one that is compared: a Python float becomes F64, and fails where the program has
    F32 (say np.float32(x)). An array of uint16 is bfloat16 by its bits, as f32_to_bf16() gives them."""

    def put(self, step, kind, stage, microbatch, name, array):
        text = key(step, kind, stage, microbatch, name)
        if text in self:
            raise ValueError(f"result {text} is put twice")
        self[text] = np.array(array)

    def write(self, path):
        """Writes the file atomically."""
        write_tensors(path, self)
