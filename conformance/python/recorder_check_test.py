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
    import torch  # noqa: F401
except ImportError as error:
    print(f'skipped: {sys.executable} cannot import torch ({error})')
    sys.exit(77)


def checked(run, one):
    """The exit code of `plumbline check run --against one`, and what it prints."""
    result = subprocess.run([PROGRAM, 'check', run, '--against', one], capture_output=True, text=True, timeout=60)
    return result.returncode, result.stdout + result.stderr


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
