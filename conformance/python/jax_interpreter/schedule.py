"""The rows of schedule.csv as computations."""

import re
from typing import NamedTuple

CELL = re.compile(r"(\d+)([FBIW])(\d+)")
GROUP = re.compile(r"\((.*)\)OVERLAP_F_B")
# A value is handed on within one process, and a replica keeps its parameters whole: nothing is left to do for these.
TRANSFERS = re.compile(
    r"\d+(SEND_F|RECV_F|SEND_B|RECV_B|WAIT_SEND_F|WAIT_SEND_B|UNSHARD|RESHARD|REDUCE_GRAD|WAIT_REDUCE_GRAD)\d*"
)


class Action(NamedTuple):
    stage: int
    part: str
    microbatch: int


def computations(row):
    """[position][Action]: of a group, whose actions may overlap, in any order."""
    return [group for cell in row if (group := actions_of(cell))]


def actions_of(cell):
    if match := GROUP.fullmatch(cell):
        return [action for inner in match[1].split(";") for action in actions_of(inner)]
    if match := CELL.fullmatch(cell):
        return [Action(int(match[1]), match[2], int(match[3]))]
    if TRANSFERS.fullmatch(cell):
        return []
    raise ValueError(f"schedule.csv: `{cell}` is no action")
