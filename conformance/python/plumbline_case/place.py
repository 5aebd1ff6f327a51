"""Where an engine is: an adapter says which action of a stage runs, and those who watch the rank from outside ask.

    with at(stage=1, microbatch=3, action="B"):
        ...                                        # the backward of stage 1 for micro-batch 3
"""

import contextlib
from typing import NamedTuple, Optional


class Place(NamedTuple):
    """What does not apply is None; `action` is "F", "B", "I" or "W", or empty between actions."""

    stage: Optional[int] = None
    microbatch: Optional[int] = None
    action: str = ""

    def __str__(self):
        parts = [] if self.stage is None else [f"stage {self.stage}"]
        parts += [] if self.microbatch is None else [f"micro-batch {self.microbatch}"]
        return ", ".join(parts) + (f" ({self.action})" if self.action else "")


_now = [Place()]


def now():
    return _now[-1]


@contextlib.contextmanager
def at(stage, microbatch, action):
    _now.append(Place(stage, microbatch, action))
    try:
        yield
    finally:
        _now.pop()
