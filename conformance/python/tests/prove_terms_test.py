"""Terms of plumbline_case.prove: their rules against numbers, and planted faults that numbers do not show. In the environment
of scripts/peer:

    scripts/tests/in_peer.sh -m unittest discover -s conformance/python/tests -p 'prove_*_test.py'
"""

import math
import os
import random
import re
import sys
import tempfile
import unittest
from collections import Counter
from fractions import Fraction

import numpy as np
import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from plumbline_case import place  # noqa: E402
from plumbline_case.prove.memory import own_bytes  # noqa: E402
from plumbline_case.prove.messages import Carrier  # noqa: E402
from plumbline_case.prove.proof import Run, compare  # noqa: E402
from plumbline_case.prove.recorder import Recorder  # noqa: E402
from plumbline_case.prove.sums import JOINTLY, LINEAR, NormalForms, factor_between, rational_of  # noqa: E402
from plumbline_case.prove.terms import Terms  # noqa: E402

torch.set_num_threads(1)


def drawn(generator, *sizes):
    """Whole numbers, so that every sum is exact."""
    return torch.tensor([float(generator.randint(-9, 9)) for _ in range(math.prod(sizes))]).reshape(sizes)


class Elements(unittest.TestCase):
    """Whatever views and copies lie between: a value whose root is a leaf shows the numbers of the tensor."""

    def check(self, recorder, leaves, tensor, message):
        value = recorder.memory.read(tensor)
        if value.number:
            shown = torch.full(value.sizes, float(value.number))
        else:
            self.assertIn(value.root, leaves, message)
            flat = leaves[value.root].reshape(-1)
            shown = (flat if value.picks is None else flat[torch.from_numpy(value.picks)]).reshape(value.sizes)
        self.assertTrue(torch.equal(shown, tensor), message)

    def leaf(self, recorder, leaves, name, *sizes):
        """Numbers that no other element of a leaf has."""
        tensor = torch.arange(float(math.prod(sizes))).reshape(sizes) + 1000 * (1 + len(leaves))
        recorder.name_leaf(tensor, "leaf", name)
        leaves[recorder.memory.read(tensor).root] = tensor.clone()
        return tensor

    def test_chains_of_views(self):
        for seed in range(200):
            generator, recorder, leaves = random.Random(seed), Recorder(Terms()), {}
            x = self.leaf(recorder, leaves, "x", 2, 3, 4)
            with recorder:
                for _ in range(generator.randint(1, 6)):
                    x = self.viewed(generator, x)
            self.check(recorder, leaves, x, f"seed {seed}")

    @staticmethod
    def viewed(generator, x):
        dim = generator.randrange(x.dim()) if x.dim() else 0
        ways = [lambda: x.clone(), lambda: x.contiguous(), lambda: x.reshape(-1), lambda: x.detach(), lambda: x[None]]
        if x.dim() > 1:
            ways += [lambda: x.transpose(dim, 0), lambda: x.permute(*reversed(range(x.dim())))]
        if x.dim() and x.shape[dim] > 1:
            ways += [lambda: x.narrow(dim, 1, x.shape[dim] - 1), lambda: x.select(dim, 1), lambda: torch.chunk(x, 2, dim)[1]]
        if x.dim() and x.numel() < 200:
            ways += [lambda: x.unsqueeze(dim).expand(*x.shape[:dim], 2, *x.shape[dim:])]
        return generator.choice(ways)()

    def test_pieces_that_were_put_together(self):
        """Rows of a cat, and of the sum of the backwards of its slices, are those of one of the parts."""
        for seed in range(100):
            generator, recorder, leaves = random.Random(seed), Recorder(Terms()), {}
            dim, rows = generator.randrange(2), [generator.randint(1, 3) for _ in range(3)]
            parts = [self.leaf(recorder, leaves, f"part {i}", *((n, 2) if dim == 0 else (2, n))) for i, n in enumerate(rows)]
            whole = torch.zeros((sum(rows), 2) if dim == 0 else (2, sum(rows)), requires_grad=True)
            with recorder:
                made = torch.cat(parts, dim)
                for i, piece in enumerate(torch.split(made, rows, dim)):
                    self.check(recorder, leaves, piece, f"seed {seed}: cat, part {i}")
                torch.autograd.backward([slice_ for slice_ in self.slices(whole, rows, dim)], parts)
                for i, piece in enumerate(torch.split(whole.grad, rows, dim)):
                    self.check(recorder, leaves, piece, f"seed {seed}: slices, part {i}")
                one = torch.stack([parts[0], parts[0] * 0 + parts[0]], dim).select(dim, 0)
            self.check(recorder, leaves, one, f"seed {seed}: stack")

    @staticmethod
    def slices(whole, rows, dim):
        ends = np.cumsum(rows)
        return [
            whole.narrow(dim, int(end - n), n) if n > 1 else whole.select(dim, int(end) - 1).unsqueeze(dim)
            for end, n in zip(ends, rows)
        ]

    def test_writes_through_views(self):
        recorder, leaves = Recorder(Terms()), {}
        x, y = self.leaf(recorder, leaves, "x", 4), self.leaf(recorder, leaves, "y", 4)
        with recorder:
            base = x.clone()
            base[1:3].copy_(y[:2])
            self.assertNotIn(recorder.memory.read(base).root, leaves)
            base[:].copy_(y)
        self.check(recorder, leaves, base, "a write to all elements is the value")

    def test_memory_between_the_elements(self):
        """Of which nobody knows what it holds."""
        recorder, leaves = Recorder(Terms()), {}
        x = self.leaf(recorder, leaves, "x", 3)
        with recorder:
            apart = torch.empty_strided((3,), (2,))
            apart.copy_(x)
            self.check(recorder, leaves, apart[1:], "elements apart")
            between = torch.as_strided(apart, (3,), (1,))
        self.assertEqual(recorder.terms[recorder.memory.read(between).root].op, "constant")

    def test_memory_that_no_operator_wrote(self):
        recorder, leaves = Recorder(Terms()), {}
        x = self.leaf(recorder, leaves, "x", 4)
        x.fill_(7)  # outside of the recorder
        value = recorder.memory.read(x)
        self.assertEqual(recorder.terms[value.root].op, "constant")
        self.assertEqual(recorder.memory.unseen_writes, 1)


class Programs(unittest.TestCase):
    """Random programs and their variants: those with equal terms give equal numbers for other inputs."""

    def test_equal_terms_are_equal_for_other_inputs(self):
        """And so are equal sums; multiples are multiples."""
        seen = Counter()
        for seed in range(400):
            generator = random.Random(seed)
            program = [self.line(generator, i) for i in range(generator.randint(2, 7))]
            variant = self.varied(generator, program)
            recorder = Recorder(Terms())
            one, other = (self.term(recorder, p) for p in (program, variant))
            factor = factor_between(NormalForms(recorder.terms), one, other)
            seen["term" if one == other else "none" if factor is None else "sum" if factor == 1 else "multiple"] += 1
            for more in range(3):
                numbers = [self.run_program(p, self.inputs(random.Random(f"{seed}.{more}"))) for p in (program, variant)]
                said = f"seed {seed}: {program} and {variant}"
                if one == other:
                    self.assertTrue(torch.equal(*numbers), said)
                if factor is not None and max(float(x.abs().max()) for x in numbers) < 2**40:
                    self.assertTrue(torch.equal(numbers[0] * factor.numerator, numbers[1] * factor.denominator), said)
        # The generator makes enough of each, so that none of these is empty.
        self.assertGreater(min(seen[kind] for kind in ("term", "sum", "multiple", "none")), 8, seen)

    @staticmethod
    def inputs(generator):
        return [drawn(generator, 3, 3).double() for _ in range(3)]

    @staticmethod
    def line(generator, number):
        """(operator, operands, constant); values 0 to 2 are inputs."""
        names = ["add", "add", "add", "sub", "mul", "mm", "t", "clone", "add_", "mul_", "rows", "relu", "zeros", "half",
                 "plus", "ones", "sum", "left", "right", "left", "wide"]  # fmt: skip
        operands = tuple(generator.randrange(number, number + 3) for _ in range(2))  # the last ones: most are used
        return generator.choice(names), operands, generator.choice([1, 1, 2, 3])

    def varied(self, generator, program):
        program, at = list(program), generator.randrange(len(program))
        name, (a, b), constant = program[at]
        kind = generator.choice(["operand", "constant", "commute", "name", "nothing"])
        if kind == "operand":
            program[at] = name, (generator.randrange(at, at + 3), b), constant
        elif kind == "constant":
            program[at] = name, (a, b), generator.choice([1, 2, 3])
        elif kind == "commute":
            for i, (name, operands, constant) in enumerate(program):
                program[i] = {"left": "right", "right": "left"}.get(name, name), operands, constant
        elif kind == "name":
            program[at] = generator.choice(["clone", "t", "mul"]), (a, b), constant
        return program

    @staticmethod
    def run_program(program, inputs):
        values = [x.clone() for x in inputs]
        for name, (i, j), constant in program:
            a, b = values[i], values[j]
            made = {
                "add": lambda: torch.add(a, b, alpha=constant),
                "sub": lambda: a - b,
                "mul": lambda: a * constant,
                "mm": lambda: torch.mm(a, b),
                "t": lambda: a.t(),
                "clone": lambda: a.contiguous().clone(),
                "add_": lambda: a.clone().add_(b, alpha=constant),
                "mul_": lambda: a.clone().t().mul_(constant).t(),
                "rows": lambda: torch.cat([a[:constant], b[constant:]]),
                "relu": lambda: torch.relu(a),
                "zeros": lambda: a + torch.zeros_like(b),
                "half": lambda: a / 4 * constant,
                "plus": lambda: a + constant,
                "sum": lambda: a + b[:constant].sum(0),
                "ones": lambda: torch.ones_like(a),
                "left": lambda: (a + b) + inputs[0],
                "right": lambda: a + (b + inputs[0]),
                "wide": lambda: a + (b[0] + b[constant - 1]),
            }[name]()
            values.append(made)
        return values[-1]

    def term(self, recorder, program):
        inputs = self.inputs(random.Random(0))
        for i, x in enumerate(inputs):
            recorder.name_leaf(x, "input", str(i))
        with recorder:
            made = self.run_program(program, inputs)
        return recorder.term_of(made)

    def test_zeros_that_widen_are_added(self):
        """Or what is left would have the sizes of the other addend."""
        recorder, x = Recorder(Terms()), drawn(random.Random(0), 3)
        recorder.name_leaf(x, "input", "x")
        with recorder:
            made, total = x + torch.zeros(2, 3), x.sum()
        self.assertEqual(recorder.terms[recorder.term_of(made)].op, "aten::add.Tensor")
        self.assertEqual(recorder.terms[recorder.term_of(total)].op, "aten::sum")

    def terms_of(self, *programs):
        """Of programs of two inputs, in the mode in which composites reach the recorder."""
        terms = set()
        for program in programs:
            recorder, inputs = Recorder(Terms()), [drawn(random.Random(i), 3, 3) for i in range(2)]
            for i, x in enumerate(inputs):
                recorder.name_leaf(x, "input", str(i))
            with torch.inference_mode(), recorder:
                made = program(*inputs)
            terms.add(recorder.term_of(made))
        return terms

    def test_what_counts_as_the_same(self):
        for same in (
            (lambda x, y: x.add_(y), lambda x, y: x + y, lambda x, y: y + x),
            (lambda x, y: x.to(torch.float64), lambda x, y: torch.empty(3, 3, dtype=torch.float64).copy_(x)),
            (lambda x, y: x + torch.zeros_like(y), lambda x, y: x.clone(), lambda x, y: x / 1, lambda x, y: x.mul_(1)),
            (lambda x, y: x[:1].sum(0), lambda x, y: x[0]),
            (lambda x, y: x[:1, :1].sum(), lambda x, y: x[0, 0]),
            (lambda x, y: torch.ones(3, 3) * 4, lambda x, y: torch.full((3, 3), 4.0)),
            (lambda x, y: torch.matmul(x, y), lambda x, y: torch.mm(x, y)),
        ):
            self.assertEqual(len(self.terms_of(*same)), 1)

    def test_what_does_not(self):
        for different in (
            (lambda x, y: x, lambda x, y: x + 1, lambda x, y: x * 2, lambda x, y: x / 2, lambda x, y: x - 1),
            (lambda x, y: torch.full((3, 3), 4.0), lambda x, y: torch.ones(3, 3) + 4, lambda x, y: torch.ones(3, 3) / 4),
            (lambda x, y: torch.add(x, y, alpha=2), lambda x, y: torch.add(y, x, alpha=2), lambda x, y: x + y),
            (lambda x, y: x[:2].sum(0), lambda x, y: x[:1].sum(0), lambda x, y: x[:1].sum(1), lambda x, y: x.sum()),
            (lambda x, y: x @ y, lambda x, y: y @ x, lambda x, y: x @ y.t()),
            (lambda x, y: x.to(torch.float64), lambda x, y: x, lambda x, y: x.to(torch.float16).float()),
        ):
            self.assertEqual(len(self.terms_of(*different)), len(different))


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
        self.assertEqual(own_bytes(buffer), own_bytes(torch.zeros(2, 3)))


class Sums(unittest.TestCase):
    def test_the_table_is_that_of_the_runtime(self):
        """Whose test holds each line against LibTorch: conformance/proof/sums/linear_operators_test.cc."""
        with open(os.path.join(HERE, "..", "..", "proof", "sums", "linear_operators.cc"), encoding="utf-8") as file:
            lines = re.findall(r'\{"([\w:.]+)", (first|product|jointly)\}', file.read())
        kinds = {"first": (0,), "product": (0, 1), "jointly": JOINTLY}
        taken_apart = {"aten::add.Tensor", "aten::sub.Tensor", "aten::neg", "aten::mul.Scalar", "aten::div.Scalar"}
        self.assertLessEqual(taken_apart, {name for name, _ in lines})  # normal forms treat sums and factors themselves
        theirs = {name: kinds[kind] for name, kind in lines if name not in taken_apart}
        self.assertGreater(len(theirs), 20)
        self.assertEqual(theirs, {name: LINEAR.get(name) for name in theirs})

    def test_rationals(self):
        """Against a search of all smaller denominators."""
        generator = random.Random(5)
        for _ in range(200):
            number = generator.randint(-50, 50) / generator.randint(1, 200)
            found = rational_of(repr(number))
            smallest = next(Fraction(round(number * q), q) for q in range(1, 201) if round(number * q) / q == number)
            self.assertEqual(found, smallest, number)
        self.assertIsNone(rational_of("inf"))
        self.assertIsNone(rational_of("much"))

    def test_elements_of_sums(self):
        recorder, (x, y, w) = Recorder(Terms()), [drawn(random.Random(i), 3, 3) for i in range(3)]
        for name, leaf in (("x", x), ("y", y), ("w", w)):
            recorder.name_leaf(leaf, "leaf", name)
        with recorder:
            pairs = [
                ((x + x.t()).diagonal() + y[0], x.diagonal() * 2 + y[0]),
                ((x / 2 + x / 2).t().reshape(-1), x.t().reshape(-1)),
                ((y + x)[1:], x[1:] + y[1:]),
                (((x + w[0]) + y)[1:], ((y + w[0]) + x)[1:]),  # one is widened: the sum is taken as a whole
            ]
        for number, (one, other) in enumerate(pairs):
            self.assertTrue(torch.equal(one, other))
            terms = recorder.term_of(one), recorder.term_of(other)
            self.assertEqual(factor_between(NormalForms(recorder.terms), *terms), 1, number)

    def test_a_tensor_of_one_number_is_a_factor(self):
        recorder, x, row = Recorder(Terms()), torch.ones(3, 3) * 5, torch.ones(1)
        recorder.name_leaf(x, "leaf", "x")
        recorder.name_leaf(row, "leaf", "row")
        with recorder:
            scaled, widened = x * torch.full((1,), 4.0), row * torch.full((3,), 4.0)
        forms = NormalForms(recorder.terms)
        self.assertEqual(factor_between(forms, recorder.term_of(x), recorder.term_of(scaled)), 4)
        self.assertIsNone(factor_between(forms, recorder.term_of(row), recorder.term_of(widened)))

    def test_shuffled_and_scaled_sums(self):
        for seed in range(100):
            generator, recorder = random.Random(seed), Recorder(Terms())
            leaves = [drawn(generator, 2, 2) for _ in range(4)]
            for i, x in enumerate(leaves):
                recorder.name_leaf(x, "leaf", str(i))
            addends = [(generator.randrange(4), generator.choice([-2, -1, 1, 3])) for _ in range(generator.randint(2, 6))]
            shuffled = generator.sample(addends, len(addends))
            scale, lost = generator.choice([-2, 0.5, 3]), generator.randrange(len(addends))
            with recorder:
                made = [self.added(leaves, one, generator) for one in (addends, shuffled, addends[:lost] + addends[lost + 1 :])]
                scaled = made[1] * scale
            terms = [recorder.term_of(x) for x in (*made, scaled)]
            forms = NormalForms(recorder.terms)
            self.assertEqual(factor_between(forms, terms[0], terms[1]), 1, f"seed {seed}")
            total = [sum(c for i, c in addends if i == leaf) for leaf in range(4)]
            if any(total):
                self.assertEqual(factor_between(forms, terms[0], terms[3]), Fraction(scale), f"seed {seed}")
                self.assertNotEqual(factor_between(forms, terms[0], terms[2]), 1, f"seed {seed}")

    @staticmethod
    def added(leaves, addends, generator):
        if len(addends) == 1:
            return leaves[addends[0][0]] * addends[0][1]
        at = generator.randint(1, len(addends) - 1) if len(addends) > 1 else 0
        left, right = (Sums.added(leaves, part, generator) for part in (addends[:at], addends[at:]))
        return left + right if generator.random() < 0.5 else right.add_(left)


if __name__ == "__main__":
    unittest.main()
