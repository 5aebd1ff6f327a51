"""The order of PyTorch's class of a schedule, which its name promises: it must be that of schedule.csv."""

import itertools


def check_order(schedule, rows):
    """Raises if `schedule` has other actions than rows[rank][position] says."""
    for rank, row in enumerate(rows):
        actions = [str(action) for action in schedule.pipeline_order[rank] if action is not None]
        for number, (has, says) in enumerate(itertools.zip_longest(actions, row)):
            if has != says:
                name = type(schedule).__name__
                raise RuntimeError(f"{name}: action {number} of rank {rank} is {has}, that of schedule.csv is {says}")
