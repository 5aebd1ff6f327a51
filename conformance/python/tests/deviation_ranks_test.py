"""The ranks of the scripts that show deviations: what a script says of one that is killed, raises or hangs. In the environment
of scripts/peer:

    scripts/tests/in_peer.sh -m unittest discover -s conformance/python/tests -p deviation_ranks_test.py
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import torch
import torch.distributed as dist

PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, PYTHON)

from deviation_ranks import Failed, answers, fails  # noqa: E402

LONG = 60  # seconds of a wait that a test does not wait for
SCRIPT = f"""
import os, pathlib, sys, time
sys.path.insert(0, {PYTHON!r})
import torch.distributed as dist
from deviation_ranks import run

def body(rank):
    pathlib.Path(sys.argv[2], str(os.getpid())).touch()
    dist.barrier()
    if sys.argv[1] == "raises" and rank == 1:
        raise ValueError("no room")
    time.sleep({LONG})

run(2, body)
"""


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def is_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def raises():
    try:
        raise ValueError("\n no room\nfor more")
    except ValueError as error:
        raise RuntimeError("a stage failed") from error


def raises_late():
    time.sleep(0.5)
    raises()


def loses_a_connection():
    raise RuntimeError("Connection closed by peer")


def raises_without_words():
    raise AssertionError


def exits():
    os._exit(3)


def hangs():
    time.sleep(LONG)


class InFolder(unittest.TestCase):
    """Each rank puts a file with its process's number into self.folder."""

    def setUp(self):
        self.folder = self.new_folder()

    def new_folder(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return folder.name

    def running(self):
        return [pid for pid in os.listdir(self.folder) if is_running(pid)]

    def assert_none_is_left(self, ranks):
        self.assertEqual((len(os.listdir(self.folder)), self.running()), (ranks, []))


class Ranks(InFolder):
    def failure_of_rank_1(self, act, of_rank_0, **limits):
        """What a script says if rank 1 calls act() after a message from rank 0, and rank 0 then calls of_rank_0()."""

        def body(rank):
            open(os.path.join(self.folder, str(os.getpid())), "w").close()
            if rank == 0:
                dist.send(torch.ones(1), 1)
                return of_rank_0()
            dist.recv(torch.empty(1), 0)
            return act()

        begun = time.monotonic()
        with self.assertRaises(Failed) as raised:
            answers(2, body, message_seconds=LONG, **limits)
        self.assertLess(time.monotonic() - begun, LONG / 2)
        self.assert_none_is_left(2)
        return str(raised.exception)

    def test_each_answers(self):
        def body(rank):
            total = torch.tensor(rank + 1)
            dist.all_reduce(total)
            return rank, total.item()

        self.assertEqual(answers(3, body), [(0, 6), (1, 6), (2, 6)])

    def test_one_that_fails_while_another_waits_for_it_is_named(self):
        receive = lambda: dist.recv(torch.empty(1), 1)
        for act, why in ((is_killed, "killed by signal 9 (Killed)"), (raises, "ValueError: no room"),
                         (raises_without_words, "AssertionError: in raises_without_words"),
                         (exits, "ended with exit code 3, without an answer")):  # fmt: skip
            with self.subTest(why):
                self.folder = self.new_folder()
                self.assertEqual(self.failure_of_rank_1(act, receive), f"rank 1: {why}")

    def test_one_that_lost_another_is_not_the_cause(self):
        self.assertEqual(self.failure_of_rank_1(raises_late, loses_a_connection), "rank 1: ValueError: no room")

    def test_those_that_hang_are_named(self):
        for of_rank_0, who in ((lambda: None, "rank 1"), (hangs, "ranks 0, 1")):
            with self.subTest(who):
                self.folder = self.new_folder()
                self.assertEqual(self.failure_of_rank_1(hangs, of_rank_0, seconds=5), f"{who}: no answer within 5 s")

    def test_an_answer_that_cannot_be_sent(self):
        self.assertRegex(self.failure_of_rank_1(lambda: (lambda: None), lambda: None), r"^rank 1: \w+Error: .*pickle")

    def test_an_expected_failure(self):
        def run(*ranks, expected):
            self.assertEqual((ranks, expected), ((2, 3), "no room"))
            raise Failed([1], "ValueError: no room")

        self.assertEqual(fails(run, 2, 3, expected="no room"), "ValueError: no room")
        self.assertIsNone(fails(lambda expected: None, expected="no room"))


class Scripts(InFolder):
    def start(self, word):
        script = subprocess.Popen(
            [sys.executable, "-B", "-c", SCRIPT, word, self.folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"TMPDIR": self.new_folder()},
        )
        self.addCleanup(script.communicate)
        return script

    def test_a_failure_that_is_not_expected_ends_the_script_in_one_line(self):
        script = self.start("raises")
        out, said = script.communicate(timeout=LONG)
        self.assertEqual((script.returncode, out), (2, ""), said)
        self.assertEqual(said, "not what this script is about: rank 1: ValueError: no room\n")
        self.assert_none_is_left(2)

    def test_ranks_end_with_a_script_that_is_killed(self):
        script, deadline = self.start("hangs"), time.monotonic() + LONG / 2
        while len(os.listdir(self.folder)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        script.kill()
        while self.running() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assert_none_is_left(2)


if __name__ == "__main__":
    unittest.main()
