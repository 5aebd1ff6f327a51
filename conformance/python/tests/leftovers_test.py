"""Messages that a case leaves over for the next one: small engines on real ranks, some with one fault in the first of two cases.
In the environment of scripts/peer:

    scripts/tests/in_peer.sh -m unittest discover -s conformance/python/tests -p leftovers_test.py
"""

import os
import re
import sys
import tempfile
import unittest
import unittest.mock

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from plumbline_case import backend  # noqa: E402
from plumbline_case.torch_distributed import GlooBackend, messages  # noqa: E402

messages.install()
torch.set_num_threads(1)

EVENTS = [(0, "begins"), (0, "done"), (1, "begins"), (1, "done")]
under_way = []  # works and their buffers


class Engine(GlooBackend):
    """A case is its number; exchange(rank, case) is all that happens in it."""

    def __init__(self, exchange):
        self.exchange = exchange

    def run(self, case, prepared):
        self.exchange(self.rank, int(case))

    def write(self, made, case, file):
        """There are no results."""


# Exchanges.


def post(case, destination, **where):
    under_way.append(torch.tensor(case))
    under_way.append(dist.isend(under_way[-1], destination, **where))


def receive(case, source, **where):
    got = torch.empty((), dtype=torch.int64)
    dist.recv(got, source, **where)
    if got.item() != case:
        raise ValueError(f"case {case} got the message of case {got.item()}")


def right(rank, case):
    for _ in range(3):
        post(case, 1 - rank)
        receive(case, 1 - rank)


def right_from_any(rank, case):
    if rank == 0:
        post(case, 1)
    else:
        receive(case, None)


def await_one(source):
    under_way.append(torch.empty((), dtype=torch.int64))
    under_way.append(dist.irecv(under_way[-1], source))


def never_waits(rank, case):
    if rank == 0:
        post(case, 1)
    else:
        await_one(0)


def sends_thrice(rank, case, source=0):
    if rank == 0:
        for _ in range(1 if case else 3):
            post(case, 1)
    else:
        receive(case, source)


def sends_thrice_to_any(rank, case):
    sends_thrice(rank, case, source=None)


def receives_twice(rank, case):
    never_waits(rank, case)
    if rank == 1 and case == 0:
        await_one(0)


def sends_twice_in_a_group(rank, case):
    """Whose ranks have other numbers in the group."""
    group = dist.new_group([1, 2])
    if rank == 2:
        for _ in range(1 if case else 2):
            post(case, 1, group=group)
    elif rank == 1:
        receive(case, 2, group=group)


class Leftovers(unittest.TestCase):
    def told(self, exchange, ranks=2, **more):
        events = []
        job = {"ranks": ranks, "cases": [{"folder": str(n), "results": ""} for n in range(2)], "timeout_seconds": 20, "seed": 1}
        is_installed = unittest.mock.patch.object(messages, "install")
        cases = unittest.mock.patch.object(backend, "load", os.path.basename)
        with tempfile.TemporaryDirectory() as folder, is_installed, cases:
            Engine(exchange).run_job(job | more, folder, folder, lambda *event: events.append(event))
        return events

    def test_right_exchanges(self):
        for exchange in (right, right_from_any, never_waits):
            for wire in ({}, {"wire": "slow"}, {"wire": "slow,poison,shuffle"}):
                with self.subTest(exchange.__name__, **wire):
                    self.assertEqual(self.told(exchange, **wire), EVENTS)

    def test_the_case_that_leaves_messages_over_fails_and_not_the_next_one(self):
        for exchange, ranks, why in (
            (sends_thrice, 2, "rank 1 has not received 2 messages from rank 0, which the next case would receive"),
            (sends_thrice_to_any, 2, "rank 1 has not received 2 messages from any rank, which the next case would receive"),
            (receives_twice, 2, "rank 1 still receives 1 message from rank 0, which the next case would send"),
            (sends_twice_in_a_group, 3, "rank 1 has not received 1 message from rank 2, which the next case would receive"),
        ):
            for wire in ({}, {"wire": "slow"}):
                with self.subTest(exchange.__name__, **wire):
                    told = self.told(exchange, ranks, **wire)
                    self.assertEqual([event[:2] for event in told], [(0, "begins"), (0, "failed"), *EVENTS[2:]])
                    self.assertRegex(told[1][2], rf"^rank \d: RuntimeError: {re.escape(why)}$")


if __name__ == "__main__":
    unittest.main()
