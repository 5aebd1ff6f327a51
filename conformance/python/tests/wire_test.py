"""The bad wire of plumbline_case.torch_distributed: small engines with one fault each, which it must show, and correct ones,
which it must leave right. In the environment of scripts/peer:

    scripts/tests/in_peer.sh -m unittest discover -s conformance/python/tests -p wire_test.py
"""

import datetime
import multiprocessing
import os
import re
import sys
import tempfile
import time
import unittest

import torch
import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from plumbline_case.torch_distributed import messages, wire  # noqa: E402

messages.install()
MESSAGES = 20
COMBINATIONS = ("slow", "poison", "shuffle", "slow,poison", "slow,poison,shuffle")


def values(message):
    return torch.arange(4.0) + 10 * message


# Engines: engine(rank, ranks) returns whether this rank got what was meant.


def correct(rank, ranks):
    """Both directions at once; a buffer is used again once waited for; some isends are waited for at the end only."""
    other, right, kept, works = 1 - rank, True, [], []
    buffer = torch.empty(4)
    for m in range(MESSAGES):
        received = torch.empty(4)
        work = dist.irecv(received, other)
        buffer.copy_(values(m))
        sent = dist.isend(buffer, other)
        work.wait()
        sent.wait()
        right &= received.equal(values(m)) and buffer.equal(values(m))
        kept.append(values(m))
        works.append(dist.isend(kept[-1], other))
        dist.recv(received, other)
        right &= received.equal(values(m))
        integers = torch.empty(2, dtype=torch.int64)
        for one in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.tensor([m, -m]), other),
                                           dist.P2POp(dist.irecv, integers, other)]):  # fmt: skip
            one.wait()
        right &= integers.tolist() == [m, -m]
    for work in works:
        work.wait()
    return right


def answers_first(rank, ranks):
    """Waits for the answer before it waits for its isend."""
    received = torch.empty(4)
    if rank == 0:
        sent = dist.isend(values(1), 1)
        answer = dist.irecv(received, 1)
        answer.wait()
        right = received.equal(values(2))
        sent.wait()
        return right
    dist.recv(received, 0)
    dist.send(values(2), 0)
    return received.equal(values(1))


def writes_before_the_wait(rank, ranks):
    received, buffer = torch.empty(4), values(1)
    if rank == 0:
        work = dist.isend(buffer, 1)
        buffer.zero_()
        work.wait()
        return True
    dist.recv(received, 0)
    return received.equal(values(1))


def frees_before_the_wait(rank, ranks):
    received, buffer = torch.empty(4), values(1)
    if rank == 0:
        work = dist.isend(buffer, 1)
        buffer.data = torch.Tensor()
        work.wait()
        return True
    dist.recv(received, 0)
    return received.equal(values(1))


def reads_before_the_wait(rank, ranks):
    received = values(1)  # from an earlier message, which was the same
    if rank == 0:
        dist.send(values(1), 1)
        return True
    work = dist.irecv(received, 0)
    time.sleep(0.2)
    early = received.clone()
    work.wait()
    return early.equal(values(1))


def relies_on_other_pairs(rank, ranks):
    """Rank 0 sends to 2, then to 1, and 1 to 2: rank 2 takes whatever comes first for rank 0's."""
    received, right = torch.empty(4), True
    for m in range(MESSAGES):
        if rank == 0:
            works = [dist.isend(values(m), 2), dist.isend(values(m), 1)]
            for work in works:
                work.wait()
        elif rank == 1:
            dist.recv(received, 0)
            dist.send(-values(m), 2)
        else:
            dist.recv(received)
            right &= received.equal(values(m))
            dist.recv(received)
        dist.barrier()
    return right


def _rank(rank, ranks, engine, text, folder, queue):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=20))
    with wire.bad_wire(text.split(",") if text else (), 1, rank):
        right = engine(rank, ranks)
    dist.destroy_process_group()
    queue.put(right)


def run(engine, text, ranks=2):
    """Whether every rank got what was meant."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        queue = context.Queue()
        processes = [context.Process(target=_rank, args=(r, ranks, engine, text, folder, queue)) for r in range(ranks)]
        for process in processes:
            process.start()
        answers = [queue.get(timeout=30) for _ in processes]
        for process in processes:
            process.join(10)
            process.kill()
    return all(answers)


class Contract(unittest.TestCase):
    def test_no_send_is_later_than_it_says(self):
        page = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "INTERPRETING.md")
        with open(page, encoding="utf-8") as file:
            most = re.search(r"^\| `slow` \| each send begins a random time later, at most (\d+) ms", file.read(), re.MULTILINE)[1]
        self.assertLessEqual(wire.DELAY + wire.SHUFFLE + wire.LATE, int(most) / 1000)


class Garbage(unittest.TestCase):
    def test_every_element_is_what_no_engine_computes(self):
        for shape in ((), (3,), (2, 0), (2, 3)):
            for tensor, value in ((torch.zeros(shape), None), (torch.zeros(shape, dtype=torch.complex64), None),
                                  (torch.zeros(shape, dtype=torch.int16), -0x5A5B), (torch.zeros(shape, dtype=torch.uint8), 0xA5),
                                  (torch.zeros(shape + (2,), dtype=torch.int64).transpose(0, -1), -0x5A5A5A5A5A5A5A5B)):  # fmt: skip
                with self.subTest(shape, dtype=tensor.dtype):
                    wire.garbage(tensor)
                    self.assertTrue((tensor.isnan() if value is None else tensor == value).all())


class BadWire(unittest.TestCase):
    def test_correct_engines_stay_right(self):
        for text in ("", *COMBINATIONS):
            for engine in (correct, answers_first):
                with self.subTest(text, engine=engine.__name__):
                    self.assertTrue(run(engine, text))

    def test_buffers_that_are_used_too_early(self):
        for engine, word in ((writes_before_the_wait, "slow"), (frees_before_the_wait, "slow"), (reads_before_the_wait, "poison")):
            for text in (word, "slow,poison,shuffle"):
                with self.subTest(text, engine=engine.__name__):
                    self.assertFalse(run(engine, text))

    def test_a_read_before_the_wait_is_right_by_luck_without_poison(self):
        for text in ("", "slow,shuffle"):
            with self.subTest(text):
                self.assertTrue(run(reads_before_the_wait, text))

    def test_shuffle_shows_an_engine_that_relies_on_other_pairs(self):
        self.assertTrue(run(relies_on_other_pairs, "slow", ranks=3))
        self.assertFalse(run(relies_on_other_pairs, "shuffle", ranks=3))


if __name__ == "__main__":
    unittest.main()
