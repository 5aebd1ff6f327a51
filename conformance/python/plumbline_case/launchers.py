"""The environment variables by which a process knows its rank."""

import os
import sys

# The rank and the number of ranks, as torchrun and plumbline-case, Open MPI, MPICH and Slurm's srun give them.
LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
# All by which a process of another launcher would be taken for one of these ranks; the last two of torchrun.
RANK_VARIABLES = (*(name for pair in LAUNCHERS for name in pair), "LOCAL_RANK", "LOCAL_WORLD_SIZE")


def launched(ranks):
    """(rank, number of ranks) in the environment of a launcher that started so many; None without one. Another number is that
    of a launcher around plumbline, such as the shell of `srun --pty` or a pod."""
    found = ((os.environ.get(rank), os.environ.get(size)) for rank, size in LAUNCHERS)
    given = next(((int(rank), ranks) for rank, size in found if rank and size == str(ranks)), None)
    others = [f"{size}={os.environ[size]}" for _, size in LAUNCHERS if os.environ.get(size, "1") != "1"]
    if given is None and others:
        print(f"plumbline: {', '.join(others)} is not taken for the launcher's, since the job has {ranks} ranks", file=sys.stderr)
    return given
