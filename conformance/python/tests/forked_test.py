"""Ranks as forked processes: when GlooBackend forks them, and how their failures are told. In the environment of scripts/peer:

    scripts/tests/in_peer.sh -m unittest discover -s conformance/python/tests -p forked_test.py
"""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from plumbline_case.prove import command  # noqa: E402
from plumbline_case.prove.proof import Proof  # noqa: E402
from plumbline_case.torch_distributed import GlooBackend  # noqa: E402
from plumbline_case.torch_distributed.forked import execute_cases  # noqa: E402

torch.set_num_threads(1)

CASES = 2
EVENTS = [(number, what) for number in range(CASES) for what in ("begins", "done")]


def failing(where, action):
    """What a rank does with (rank, number of a case): the action there, and nothing elsewhere."""
    return lambda *here: action() if here == where else None


def raise_error():
    raise ValueError("no room")


def errors_of(action):
    """What the action and its child processes write to standard error."""
    with tempfile.TemporaryFile("w+") as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            action()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        file.seek(0)
        return file.read()


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


LAUNCHED = f"""
import os, signal, sys
sys.path.insert(0, {os.path.dirname(os.path.dirname(os.path.abspath(__file__)))!r})
import torch.distributed as dist
from plumbline_case.torch_distributed import GlooBackend

class Engine(GlooBackend):
    def run_cases(self, job, folder, out, tell, first=0):
        dist.barrier()
        if job["seed"] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.rank == 0:
            tell(0, "done")

Engine().main()
"""


class Launched(unittest.TestCase):
    def start(self, folder, seed):
        """Exit codes, and what rank 0 prints, of the two ranks of a start, as mpirun starts them."""
        job = os.path.join(folder, "job.json")
        with open(job, "w", encoding="utf-8") as file:
            json.dump({"format": "plumbline-job/1", "ranks": 2, "cases": [], "timeout_seconds": 20, "seed": seed}, file)
        environment = {name: value for name, value in os.environ.items() if name != "MASTER_ADDR"}
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", LAUNCHED, "run", "--job", job, "--out", folder], stdout=subprocess.PIPE, text=True,
                env=environment | {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_SIZE": "2"},
            )
            for rank in range(2)
        ]  # fmt: skip
        try:
            printed = [process.communicate(timeout=60)[0] for process in processes]
        finally:
            for process in processes:
                process.kill()
        return [process.returncode for process in processes], printed[0]

    def test_a_start_does_not_meet_the_dead_ranks_of_the_one_before(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(self.start(folder, seed=0), ([-signal.SIGKILL] * 2, ""))
            self.assertEqual(self.start(folder, seed=1), ([0, 0], "@plumbline case 0 done\n"))


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
        engine = Engine()
        engine.fails = failing((1, 0), raise_error)
        with unittest.mock.patch.dict(os.environ, {"RANK": "0", "WORLD_SIZE": "1"}):
            self.run_job(engine)
        self.assertEqual(self.told, [(0, "begins"), (0, "failed", "rank 1: ValueError: no room"), *EVENTS[2:]])

    def test_a_failure_after_the_last_case_is_no_event(self):
        """Such as one of a message that leaves at the end, or of destroy_process_group()."""
        for rank in (0, 1):
            for action, ending, traceback in (
                (raise_error, "exited with code 1", "ValueError: no room\n"),
                (lambda: os.kill(os.getpid(), signal.SIGKILL), "killed by signal 9 (Killed)", ""),
            ):
                with self.subTest(ending, rank=rank):
                    engine, self.told = Engine(), []
                    engine.fails = failing((rank, CASES), action)

                    def ends():
                        with self.assertRaises(SystemExit) as end:
                            self.run_job(engine)
                        self.assertEqual(end.exception.code, 1)

                    errors = errors_of(ends)
                    self.assertEqual(self.told, EVENTS)
                    self.assertTrue(errors.endswith(f"plumbline: rank {rank}: {ending}, after the last case\n"), errors)
                    self.assertIn(traceback, errors)

    def test_a_failure_that_is_told_has_no_second_traceback(self):
        engine = Engine()
        engine.fails = failing((1, 0), raise_error)
        self.assertNotIn("Traceback", errors_of(lambda: self.run_job(engine)))

    def test_a_rank_that_ends_before_rank_0_is_done(self):
        """Its end is of the next case, not of the one that rank 0 calls done."""

        def run(rank, first, store, tell):
            for event in EVENTS[2 * first :] if rank == 0 else ():
                time.sleep(0.05)
                tell(*event)
            if rank == 1:
                os._exit(3)

        why = execute_cases(CASES, 2, run, lambda *event: self.told.append(event))
        self.assertEqual((self.told, why), (EVENTS, "rank 1: exited with code 3, after the last case"))

    def test_a_proof_after_whose_last_case_a_rank_fails_is_no_success(self):
        why = "rank 1: exited with code 1, after the last case"
        with unittest.mock.patch.object(command, "execute_cases", return_value=why):
            self.assertEqual(command.prove([], {}, 2, None, None, None), why)
        answer = io.StringIO()
        report = command.Report(unittest.mock.Mock(certificate=None), answer)
        report.put(unittest.mock.Mock(ranks=2), Proof())
        self.assertEqual(report.exit_code(), 0)
        with contextlib.redirect_stderr(answer):
            report.broken(f"on 2 ranks: {why}")
        self.assertEqual(report.exit_code(), 1)
        self.assertTrue(answer.getvalue().endswith(f"prove: on 2 ranks: {why}\n"))


if __name__ == "__main__":
    unittest.main()
