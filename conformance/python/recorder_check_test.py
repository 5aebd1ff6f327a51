"""Tests of `plumbline check --against` on the files of plumbline_recorder.py.

    PLUMBLINE_PROGRAM=$PWD/build/plumbline scripts/peer torch 2.15.0 -- conformance/python/recorder_check_test.py

PLUMBLINE_PROGRAM is the program. Without it, or without torch, all tests are skipped, with a reason (exit 77).
"""

import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLE = os.path.join(HERE, 'examples', 'train_pipeline.py')
PROGRAM = os.environ.get('PLUMBLINE_PROGRAM')

if not PROGRAM:
    print('skipped: PLUMBLINE_PROGRAM is not set')
    sys.exit(77)
try:
    import torch
except ImportError as error:
    print(f'skipped: {sys.executable} cannot import torch ({error})')
    sys.exit(77)

from torch import nn

sys.path.insert(0, HERE)
from plumbline_recorder import Recorder, fill


def checked(run, one):
    """The exit code of `plumbline check run --against one`, and what it prints."""
    result = subprocess.run([PROGRAM, 'check', run, '--against', one], capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout + result.stderr


class Language(nn.Module):
    """A stage of an embedding, two layers and a head with the embedding's weight: under its name, or under the head's."""

    def __init__(self, first, last, names):
        super().__init__()
        self.embed = nn.Embedding(6, 4) if first or names == 1 else None
        self.a, self.b = (nn.Sequential(nn.Linear(4, 4), nn.Tanh()) if there else None for there in (first, last))
        self.head = nn.Linear(4, 6, bias=False) if last and names == 2 else None
        if first and last and names == 2:
            self.head.weight = self.embed.weight
        fill(self, 1, rename=lambda name: name.replace('head.', 'embed.'))

    def forward(self, x):
        if self.a is not None:
            x = self.a(self.embed(x))
        if self.b is None:
            return x
        return nn.functional.linear(self.b(x), self.embed.weight) if self.head is None else self.head(self.b(x))

    @property
    def tied(self):
        return self.embed.weight if self.head is None else self.head.weight


class TiedTest(unittest.TestCase):
    """Two stages in this process: of two ranks, each with a copy of the tied parameter, or of one rank with one parameter."""

    tokens = [torch.tensor([[0, 1, 5], [m, 2, 4]]) for m in range(4)]

    def check(self, names, ranks, fault=''):
        with tempfile.TemporaryDirectory() as folder:
            one, run = os.path.join(folder, 'one'), os.path.join(folder, 'run')
            recorder = Recorder(one, microbatches=4)
            model = recorder.watch(Language(True, True, names))
            for tokens in self.tokens:
                model(tokens).square().sum().backward()
            recorder.step_done()
            self.train([Language(True, False, names), Language(False, True, names)], run, names, ranks, fault)
            return checked(run, one)

    def train(self, stages, folder, names, ranks, fault):
        if ranks == 1 and names == 1:
            stages[1].embed = stages[0].embed
        elif ranks == 1:
            stages[1].head.weight = stages[0].embed.weight
        if fault == 'scaled':
            stages[1].tied.register_hook(lambda gradient: gradient * 1.001)
        recorders = [Recorder(folder, microbatches=4, rank=rank, ranks=ranks) for rank in range(ranks)]
        for number, stage in enumerate(stages):
            recorders[number % ranks].watch(stage, number)
        for tokens in self.tokens:
            out = stages[0](tokens)
            entered = out.detach().requires_grad_()
            stages[1](entered).square().sum().backward()
            out.backward(entered.grad)
        if ranks == 2 and fault != 'apart':
            total = stages[0].tied.grad + stages[1].tied.grad
            stages[0].tied.grad, stages[1].tied.grad = total, total.clone()
        for recorder in recorders:
            recorder.step_done()

    def test_sound_runs_agree(self):
        for names, ranks in ((1, 1), (1, 2), (2, 1), (2, 2)):
            with self.subTest(names=names, ranks=ranks):
                code, text = self.check(names, ranks)
                self.assertEqual(code, 0, text)
                self.assertNotIn('contributions', text)

    def test_faults_are_located(self):
        for names in (1, 2):
            with self.subTest(names=names):
                code, text = self.check(names, 2, 'scaled')
                self.assertEqual(code, 1, text)
                self.assertRegex(text, r'\(backward\): step 0, micro-batch 0: backward `embed.weight` ')
                self.assertIn('it is the sum over the copies of a tied parameter', text)
                code, text = self.check(names, 2, 'apart')
                self.assertEqual(code, 1, text)
                self.assertRegex(text, r'\(accumulation\): step 0, stage \d: gradient `(embed|head).weight` ')
                self.assertIn('they were not added up', text)


class WholeBatchTest(unittest.TestCase):
    """A value that is as long as the batch, but not of its rows."""

    def test_positions_are_not_cut(self):
        class Positioned(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.positions = nn.Linear(4, 4), nn.Embedding(6, 4)

            def forward(self, x):
                return self.fc(x + self.positions(torch.arange(6)))

        whole = torch.arange(6.0 * 6 * 4).sin().reshape(6, 6, 4)
        with tempfile.TemporaryDirectory() as folder:
            one, run = os.path.join(folder, 'one'), os.path.join(folder, 'run')
            for options in (*({'whole_batch': True, 'perturb': seed} for seed in (None, 1, 2, 3)), {}):
                recorder = Recorder(one if options else run, microbatches=3, **options)
                model = recorder.watch(fill(Positioned(), 1))
                for batch in [whole] if options else whole.tensor_split(3):
                    model(batch).square().sum().backward()
                recorder.step_done()
            code, text = checked(run, one)
        self.assertEqual(code, 0, text)
        self.assertIn('not in the one-rank run: `positions:out`\n', text)


class PipelineTest(unittest.TestCase):
    """The example under torchrun: each injected fault is located."""

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = holder.name
        cls.train('one')

    @classmethod
    def train(cls, name, *words, ranks=1):
        launcher = ['-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', str(ranks)] if ranks > 1 else []
        result = subprocess.run(
            [sys.executable, *launcher, EXAMPLE, '--record', os.path.join(cls.folder, name), *words],
            capture_output=True, text=True, timeout=240, env={**os.environ, 'OMP_NUM_THREADS': '1'},
        )  # fmt: skip
        if result.returncode:
            raise RuntimeError(result.stderr)

    def check(self, run, one='one'):
        return checked(os.path.join(self.folder, run), os.path.join(self.folder, one))

    def test_a_sound_run_is_equal_bit_for_bit(self):
        self.train('run', '--schedule', 'InterleavedZeroBubble', ranks=2)
        code, text = self.check('run')
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r'PASS: (\d+) values in 1 step agree, \1 bit for bit')

    def test_sums_in_another_order_are_no_fault(self):
        self.train('loop', '--schedule', 'LoopedBFS', ranks=2)
        code, text = self.check('loop')
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r'gradients up to the order of their sum')

    def test_a_whole_batch_needs_perturbed_runs(self):
        self.train('whole', '--whole-batch')
        self.train('run-whole', ranks=2)
        self.assertEqual(self.check('run-whole', 'whole')[0], 1)
        for seed in range(3):
            self.train('whole', '--whole-batch', '--perturb', str(seed))
        code, text = self.check('run-whole', 'whole')
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r'within what rounding moved in 3 perturbed runs')

    def test_faults_are_located(self):
        for fault, first, where in (
            ('forward', r'\(forward\): step 0, stage 1, micro-batch 1: forward `layers.3:in`', 'layers.2:out'),
            ('backward', r'\(backward\): step 0, stage 1, micro-batch 3: backward `layers.2:out`', 'layers.3:in'),
            ('detach', r'\(backward\): step 0, micro-batch 0: backward `layers.2:out` .* is missing', 'layers.3:in'),
            ('drop-loss', r'\(loss\): step 0, micro-batch 2: loss', 'the loss function'),
            ('scale-grad', r'\(accumulation\): step 0, stage 1: gradient `head.',
             'the contribution of each micro-batch agrees'),
        ):
            with self.subTest(fault):
                self.train(fault, '--fault', fault, ranks=2)
                code, text = self.check(fault)
                self.assertEqual(code, 1, text)
                self.assertRegex(text, first)
                self.assertIn(where, text)


if __name__ == '__main__':
    unittest.main()
