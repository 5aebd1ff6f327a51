"""Planted faults that numbers do not show, found by the terms of plumbline_case.prove: in a pipeline by hand, and in
messages."""

import os
import random
import sys
import tempfile
import unittest

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from plumbline_case import place  # noqa: E402
from plumbline_case.prove.memory import own_bytes  # noqa: E402
from plumbline_case.prove.messages import Carrier  # noqa: E402
from plumbline_case.prove.proof import Run, compare  # noqa: E402
from plumbline_case.prove.recorder import Recorder  # noqa: E402
from plumbline_case.prove.terms import Terms  # noqa: E402
from whole_numbers import drawn  # noqa: E402

torch.set_num_threads(1)

MICROBATCHES = 4


class Pipeline:
    """Two stages and MICROBATCHES micro-batches by hand, whose plain run is run_plain(). `fault` changes one thing."""

    def __init__(self, fault=None, numbers=lambda i: float(i + 1)):
        self.recorder, self.fault = Recorder(Terms()), fault
        self.results, self.numbers_of = {}, {}
        generator = random.Random(3)
        self.layers = [nn.Linear(2, 2), nn.Linear(2, 2)]
        for i, layer in enumerate(self.layers):
            for name, parameter in layer.named_parameters():
                parameter.data = drawn(generator, *parameter.shape)
                self.recorder.name_leaf(parameter.data, "parameter", f"{i}.{name}")
        self.inputs = [torch.full((1, 2), numbers(i)) for i in range(MICROBATCHES)]
        for i, x in enumerate(self.inputs):
            self.recorder.name_leaf(x, "input", f"of micro-batch {i}")

    def loss(self, y):
        return (y * y).sum()

    def put(self, step):
        for i, layer in enumerate(self.layers):
            for name, parameter in layer.named_parameters():
                self.results[f"{step}/grad/-/-/{i}.{name}"] = parameter.grad.clone()

    def finished(self):
        terms = {key: self.recorder.term_of(x) for key, x in self.results.items()}
        numbers = {key: x.numpy().tobytes() for key, x in self.results.items()}
        return Run(terms, numbers, self.recorder.terms, self.recorder.take_log())

    def run_plain(self, steps=1, rate=None):
        with self.recorder:
            for step in range(steps):
                for m, x in enumerate(self.inputs):
                    with place.at(None, m, "B"):
                        self.loss(self.layers[1](self.layers[0](x))).backward()
                self.end(step, rate)
        return self.finished()

    def run(self, steps=1, rate=None):
        with self.recorder:
            for step in range(steps):
                old = [p.detach().clone() for p in self.layers[0].parameters()]
                kept = [self.forward(m, x) for m, x in enumerate(self.inputs)]
                order = reversed(range(MICROBATCHES)) if self.fault == "reversed" else range(MICROBATCHES)
                for m in order:
                    self.backward(m, kept)
                self.end(step, rate)
                if self.fault == "stale" and step == 0:
                    for p, before in zip(self.layers[0].parameters(), old):
                        p.data.copy_(before)
        return self.finished()

    def end(self, step, rate):
        self.put(step)
        for layer in self.layers:
            for parameter in layer.parameters():
                if rate is not None:
                    with torch.no_grad():
                        parameter.add_(parameter.grad, alpha=-rate)
                parameter.grad = None

    def forward(self, m, x):
        with place.at(0, m, "F"):
            sent = self.layers[0](x)
        received = sent.detach().clone().requires_grad_()
        with place.at(1, m, "F"):
            return sent, received, self.loss(self.layers[1](received))

    def backward(self, m, kept):
        if self.fault == "other micro-batch" and m == 2:
            kept = [*kept[:2], (kept[1][0], *kept[2][1:]), *kept[3:]]
        sent, received, loss = kept[m]
        with place.at(1, m, "B"):
            loss.backward(retain_graph=True)
            if self.fault == "twice" and m == 3:
                right = received.grad
                received.grad = None
                loss.backward(retain_graph=True)
                received.grad = right
        with place.at(0, m, "B"):
            gradient = received.grad * 0.25 if self.fault == "scaled" else received.grad
            sent.backward(gradient, retain_graph=True)
            if self.fault == "cancels" and m == 3:
                sent.backward(gradient, retain_graph=True)
                sent.backward(-gradient, retain_graph=True)


class Dead(Pipeline):
    """Whose gradients are 0."""

    def loss(self, y):
        return torch.relu(y - 10000).sum()


class PlantedFaults(unittest.TestCase):
    """Faults that change no number of this run, and one that does. Each is refuted, at the right place."""

    def proof(self, kind, fault, claim="computation", numbers=lambda i: float(i + 1), **steps):
        expected = kind(numbers=numbers).run_plain(**steps)
        found = kind(fault, numbers).run(**steps)
        self.assertEqual(fault != "scaled", expected.numbers == found.numbers, "what a comparison of numbers sees")
        return compare(expected, [found], ("grad",), claim)

    def refuted(self, why, *what, **more):
        proof = self.proof(*what, **more)
        self.assertEqual(proof.outcome, "refuted")
        self.assertRegex(proof.why, why)

    def test_without_a_fault(self):
        for kind, steps in ((Pipeline, {}), (Dead, {}), (Pipeline, {"steps": 2, "rate": 0.0})):
            proof = self.proof(kind, None, **steps)
            self.assertEqual((proof.outcome, proof.why, proof.repeated), ("proven", "", {}))
            self.assertEqual(len(proof.results), 4 * steps.get("steps", 1))

    def test_another_micro_batch_of_equal_numbers(self):
        self.refuted(
            r"^grad 0\.weight of step 0: stage 0, micro-batch 2 \(B\): expected input of micro-batch 2, "
            r"found input of micro-batch 1, as operand 1 of aten::mm; as sums, of the results that differ: 1 is another sum; "
            r"their numbers are equal$",
            Pipeline, "other micro-batch", numbers=lambda i: 1.0,
        )  # fmt: skip

    def test_an_addend_too_often_that_is_zero(self):
        self.refuted(r"^grad 1\.bias of step 0: stage 1, micro-batch 3 \(B\): added too often: aten::threshold_backward of "
                     r"micro-batch 3;", Dead, "twice")  # fmt: skip

    def test_a_double_accumulation_that_cancels(self):
        self.refuted(r"^grad 0\.bias of step 0: stage 0, micro-batch 3 \(B\): .*all 2 are the expected sum in another order; "
                     "their numbers are equal$", Pipeline, "cancels")  # fmt: skip

    def test_a_stale_weight_at_the_learning_rate_0(self):
        self.refuted(r"^grad 0\.bias of step 1: stage 0, micro-batch 0 \(F\): the same sum, .*: expected aten::add.Tensor, "
                     r"found parameter 0\.bias; .*; their numbers are equal$", Pipeline, "stale", steps=2, rate=0.0)  # fmt: skip

    def test_another_order(self):
        self.refuted("the same 4 addends are added in another order; as sums, of the results that differ: all 4 are the "
                     "expected sum in another order", Pipeline, "reversed")  # fmt: skip
        proof = self.proof(Pipeline, "reversed", claim="sum")
        self.assertEqual((proof.outcome, len(proof.differ)), ("proven", 4))

    def test_a_factor(self):
        self.refuted(r"all 2 are 1/4 of the expected sum \(stage 0\); the numbers of 2 of 2 differ$", Pipeline, "scaled")

    def test_results_that_are_missing_or_too_many(self):
        run, short = Pipeline().run(), Pipeline().run()
        del short.results["0/grad/-/-/0.bias"]
        self.assertIn("0.bias of step 0: no rank delivered it", compare(run, [short], ("grad",), "computation").why)
        self.assertIn("the unsplit run has no such result", compare(short, [run], ("grad",), "computation").why)

    def test_a_copy_without_its_gradient(self):
        """Two ranks have a copy of each parameter, and one of them lost a gradient."""
        expected, whole, short = (Pipeline().run() for _ in range(3))
        key = "0/grad/-/-/0.bias"
        for rank in expected, whole, short:
            rank.results["0/param/-/-/0.bias"] = rank.results[key]
        self.assertEqual(compare(expected, [whole, short], ("grad",), "computation").outcome, "proven")
        del short.results[key], short.numbers[key]
        for ranks, number in ((whole, short), 1), ((short, whole), 0):
            for claim in ("computation", "sum"):
                proof = compare(expected, ranks, ("grad",), claim)
                self.assertEqual(proof.outcome, "refuted")
                why = rf"^grad 0\.bias of step 0: rank {number} has a copy of 0\.bias but lacks {key}, which another rank has; "
                self.assertRegex(proof.why, why + ".* 1 is another sum; the numbers of 1 of 1 differ$")
        self.assertEqual(compare(expected, (whole, short), ("param",), "computation").outcome, "proven", "not delivered")

    def test_the_worst_of_several_ranks_counts(self):
        """A rank with the sum in another order hides no other one."""
        expected, ranks = Pipeline().run_plain(), [Pipeline(fault).run() for fault in ("reversed", "scaled", None)]
        for order in ranks, ranks[::-1]:
            self.assertEqual(compare(expected, order, ("grad",), "sum").outcome, "refuted")

    def test_a_proof_without_results(self):
        self.assertEqual(compare(Pipeline().run_plain(), [], ("output",), "computation").outcome, "stopped")

    def test_work_done_twice(self):
        expected, found = Pipeline().run_plain(), Pipeline()
        with found.recorder, place.at(0, 0, "F"):
            found.layers[0](found.inputs[0])
        proof = compare(expected, [found.run()], ("grad",), "computation")
        self.assertEqual((proof.outcome, proof.repeated), ("proven", {"aten::addmm": 1}))


class Messages(unittest.TestCase):
    """Carriers of two ranks, and a transport by hand: send() notes the bytes, receive() is called when they arrive."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        terms = Terms()
        self.sender, self.receiver = Recorder(terms), Recorder(terms)
        self.from_0 = Carrier(self.folder.name, 0, self.sender.memory)
        self.to_1 = Carrier(self.folder.name, 1, self.receiver.memory)
        self.channel = ("group", 0)

    def tearDown(self):
        self.folder.cleanup()

    def leaf(self, name, number):
        x = torch.full((2, 3), number)
        self.sender.name_leaf(x, "leaf", name)
        return x

    def send(self, x):
        sent = []
        self.from_0.isend(x, 1, self.channel, sent.append)
        return sent[0]

    def receive(self):
        buffer = torch.empty(2, 3)
        self.to_1.irecv(buffer, 0, self.channel, lambda _: None)
        return buffer

    def op(self, buffer):
        return self.receiver.terms[self.receiver.memory.read(buffer).root].op

    def test_a_message_is_a_copy(self):
        one, two = self.leaf("one", 1.0), self.leaf("two", 1.0)
        buffers = self.receive(), self.receive()
        for x in (one, two):
            self.send(x)
        for buffer, x in zip(buffers, (one, two)):
            buffer.data.copy_(x)
            self.assertEqual(self.receiver.term_of(buffer), self.sender.term_of(x))

    def test_a_reader_that_does_not_wait(self):
        x, buffer = self.leaf("x", 1.0), self.receive()
        self.assertEqual(self.op(buffer), "constant")
        self.send(x)
        buffer.data.copy_(x)
        self.assertEqual(self.op(buffer), "leaf")

    def test_a_sent_buffer_that_is_changed_too_early(self):
        x, buffer = self.leaf("x", 1.0), self.receive()
        self.send(x)
        x.fill_(2)
        buffer.data.copy_(x)
        self.assertEqual(self.op(buffer), "constant")

    def test_bytes_that_arrive_after_the_read(self):
        x, buffer = self.leaf("x", 1.0), self.receive()
        self.send(x)
        buffer.data.fill_(0)
        self.assertEqual(self.op(buffer), "constant")
        self.assertEqual(bytes(own_bytes(buffer)), bytes(2 * 3 * 4))


if __name__ == "__main__":
    unittest.main()
