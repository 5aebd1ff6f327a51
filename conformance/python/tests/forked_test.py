"""Ranks as forked processes: when GlooBackend forks them, and how their failures are told. In the environment of scripts/peer:

    scripts/tests/in_peer.sh -m unittest discover -s conformance/python/tests -p forked_test.py
"""

import os
import sys
import tempfile
import unittest
import unittest.mock

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from plumbline_case.torch_distributed import GlooBackend  # noqa: E402

torch.set_num_threads(1)

CASES = 2
EVENTS = [(number, what) for number in range(CASES) for what in ("begins", "done")]


class Engine(GlooBackend):
    """Its ranks meet in each case; `fails`: what a rank does with (rank, number of a case, or CASES after the last one)."""

    fails = staticmethod(lambda rank, number: None)

    def run_cases(self, job, folder, out, tell, first=0):
        assert self.world_size == dist.get_world_size() == job["ranks"]
        for number in range(first, len(job["cases"])):
            if self.rank == 0:
                tell(number, "begins")
            try:
                self.fails(self.rank, number)
                dist.barrier()
            except Exception as error:
                self.failed(number, error, tell)
            if self.rank == 0:
                tell(number, "done")
        self.fails(self.rank, CASES)


class Forked(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder, self.told = holder.name, []

    def run_job(self, engine):
        job = {"ranks": 2, "cases": [None] * CASES, "timeout_seconds": 20, "seed": 1}
        engine.run_job(job, self.folder, self.folder, lambda *event: self.told.append(event))

    def test_the_environment_of_another_launcher_does_not_count(self):
        """A pod has RANK, and the shell of `srun -n1 --pty` SLURM_PROCID: of one rank, where the job has two."""
        for left in ({"RANK": "0", "WORLD_SIZE": "1"}, {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}):
            with self.subTest(left), unittest.mock.patch.dict(os.environ, left):
                self.told = []
                self.run_job(Engine())
                self.assertEqual(self.told, EVENTS)

    def test_a_failure_is_told_in_the_environment_of_another_launcher(self):
        def fails(rank, number):
            if (rank, number) == (1, 0):
                raise ValueError("no room")

        engine = Engine()
        engine.fails = fails
        with unittest.mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "1"}):
            self.run_job(engine)
        self.assertEqual(self.told, [(0, "begins"), (0, "failed", "rank 1: ValueError: no room"), *EVENTS[2:]])


if __name__ == "__main__":
    unittest.main()
