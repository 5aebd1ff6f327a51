"""Tests of plumbline_times.py, and of `plumbline bench gaps` on its files.

    PLUMBLINE_PROGRAM=$PWD/build/plumbline scripts/peer torch 2.15.0 -- conformance/python/times_test.py

PLUMBLINE_PROGRAM is the program; without it, or without plumbline-bench beside it, the tests that need it are skipped.
Without torch all tests are skipped, with a reason (exit 77).
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get('PLUMBLINE_PROGRAM')
HAS_BENCH = PROGRAM is not None and os.path.exists(PROGRAM + '-bench')

try:
    import torch
except ImportError as error:
    print(f'skipped: {sys.executable} cannot import torch ({error})')
    sys.exit(77)

from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

sys.path.insert(0, HERE)
from plumbline_times import StepTimes

MICROBATCHES, STEPS = 4, 3
# Seconds of a forward and of a backward of each stage: the last one is the slowest by far.
SLEEPS = {0: (0.002, 0.004), 1: (0.02, 0.04)}

SCRIPT = '''
import sys, time, torch, torch.distributed as dist
sys.path.insert(0, {here!r})
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import get_schedule_class
from plumbline_times import StepTimes

class Sleeps(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, seconds):
        ctx.seconds = seconds[1]
        time.sleep(seconds[0])
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(ctx.seconds)
        return gradient, None

class Stage(torch.nn.Module):
    def __init__(self, seconds):
        super().__init__()
        self.seconds, self.fc = seconds, torch.nn.Linear(4, 4)

    def forward(self, x):
        return Sleeps.apply(self.fc(x), self.seconds)

torch.set_num_threads(1)
dist.init_process_group('gloo')
rank, sleeps, kind = dist.get_rank(), {sleeps!r}, get_schedule_class({schedule!r})
numbers = [rank] if {single} else [rank, rank + 2]
stages = [PipelineStage(Stage(sleeps[i % 2]), i, 2 * len(numbers), torch.device('cpu')) for i in numbers]
# The modules first: the times of a stage include those of its module.
by_module, times = StepTimes({folder!r} + '/modules'), StepTimes({folder!r} + '/stages')
for stage in stages:
    by_module.watch(stage.submod, number=stage.stage_index)
    times.watch(stage)
schedule = kind(stages[0] if {single} else stages, {microbatches}, loss_fn=lambda y, t: ((y - t) ** 2).sum())
x = torch.ones(4 * {microbatches}, 4)
for _ in range({steps}):
    schedule.step(*([x] if rank == 0 else []), **({{'target': x}} if rank == 1 else {{}}))
    times.step_done()
    by_module.step_done()
dist.destroy_process_group()
'''


def read(folder):
    """[step][rank] of (action, begin, end)."""
    ranks = []
    for rank in range(len(os.listdir(folder))):
        with open(os.path.join(folder, f'rank{rank}.jsonl'), encoding='utf-8') as file:
            first, *steps = [json.loads(line) for line in file]
        assert first == {'schema': 'plumbline-times/1', 'rank': rank, 'ranks': len(os.listdir(folder))}, first
        ranks.append(steps)
    return list(zip(*ranks))


class Pipelines(unittest.TestCase):
    def record(self, schedule, single):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        script = os.path.join(folder.name, 'script.py')
        with open(script, 'w', encoding='utf-8') as file:
            file.write(SCRIPT.format(here=HERE, folder=folder.name, schedule=schedule, single=single, sleeps=SLEEPS,
                                     microbatches=MICROBATCHES, steps=STEPS))  # fmt: skip
        words = [sys.executable, '-B', '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2', script]
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return folder.name

    def expect_order(self, step, stages):
        """Every computation is there once, lasts at least as long as its stage sleeps, and follows its input."""
        times = {action: (begin, end) for rank in step for action, begin, end in rank}
        self.assertEqual(len(times), sum(len(rank) for rank in step))
        kinds = {action.strip('0123456789') for action in times}
        self.assertIn(kinds, ({'F', 'B'}, {'F', 'I', 'W'}, {'F', 'B', 'I', 'W'}))
        for stage in range(stages):
            for m in range(MICROBATCHES):
                begin, end = times[f'{stage}F{m}']
                self.assertGreaterEqual(end - begin, SLEEPS[stage % 2][0])
                if stage:
                    self.assertGreaterEqual(begin, times[f'{stage - 1}F{m}'][1])
                halves = [times[f'{stage}{kind}{m}'] for kind in 'BIW' if f'{stage}{kind}{m}' in times]
                self.assertGreaterEqual(sum(end - begin for begin, end in halves), SLEEPS[stage % 2][1])
                self.assertIn(len(halves), (1, 2))
                self.assertGreaterEqual(halves[0][0], end)
        for rank in step:
            for (_, _, end), (_, begin, _) in zip(rank, rank[1:]):
                self.assertGreaterEqual(begin, end)

    def test_stages_and_their_modules_under_1f1b(self):
        folder = self.record('1F1B', single=True)
        stages, modules = read(f'{folder}/stages'), read(f'{folder}/modules')
        self.assertEqual((len(stages), len(modules)), (STEPS, STEPS))
        self.expect_order(stages[0], 2)  # before it the modules have computed once more, to infer shapes
        for of_stages, of_modules in zip(stages[1:], modules[1:]):
            self.expect_order(of_stages, 2)
            self.expect_order(of_modules, 2)
            for rank, other in zip(of_stages, of_modules):
                self.assertEqual([action for action, _, _ in rank], [action for action, _, _ in other])
                for (_, begin, end), (_, inner_begin, inner_end) in zip(rank, other):
                    self.assertTrue(begin <= inner_begin < inner_end <= end)

    @unittest.skipUnless(HAS_BENCH, 'PLUMBLINE_PROGRAM names no program with benchmarks')
    def test_gaps_of_a_slow_stage_are_imbalance(self):
        folder = self.record('1F1B', single=True)
        for kind in 'stages', 'modules':
            svg = f'{folder}/{kind}.svg'
            words = [PROGRAM, 'bench', 'gaps', f'{folder}/{kind}', '--step', '1', '--svg', svg, '--trace', f'{folder}/{kind}.json']
            done = subprocess.run(words, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            title, _, heads, first, second, path = done.stdout.splitlines()
            self.assertRegex(title, r'\Astep 1 of 0 to 2: \d+(\.\d+)? ms\Z')
            self.assertIn('imbalance', heads)
            self.assertRegex(first, r'\A   0 ')
            self.assertRegex(second, r'\A   1 ')
            # Rank 0 computes 4 * 6 ms and waits for rank 1, which computes 4 * 60: four fifths of the step, or more.
            cells = first.split('  ')
            self.assertGreater(float(cells[-1].split()[0]), 50, first)
            imbalance = first[heads.index('imbalance') + len('imbalance') - 13 : heads.index('imbalance') + len('imbalance')]
            self.assertGreater(float(imbalance.split()[0]), 50, done.stdout)
            self.assertRegex(path, r'\Acritical path: ')
            self.assertTrue(os.path.getsize(svg))
            with open(f'{folder}/{kind}.json', encoding='utf-8') as file:
                json.load(file)
        best = subprocess.run([PROGRAM, 'bench', 'gaps', f'{folder}/stages'], capture_output=True, text=True)
        self.assertRegex(best.stdout, r'\Astep \d of 0 to 2, the one of median length: ')
        wrong = subprocess.run([PROGRAM, 'bench', 'gaps', f'{folder}/stages', '--step', '3'], capture_output=True, text=True)
        self.assertEqual((wrong.returncode, wrong.stderr), (2, 'plumbline: --step: the steps are 0 to 2, not 3\n'))

    def test_halves_of_a_backward(self):
        for step in read(f"{self.record('InterleavedZeroBubble', single=False)}/stages"):
            self.expect_order(step, 4)
            self.assertTrue(any('W' in action for rank in step for action, _, _ in rank))


class Modules(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.times = StepTimes(self.folder, rank=0, ranks=1)

    def actions(self):
        self.times.step_done()
        return [action for action, _, _ in read(self.folder)[-1][0]]

    def test_forwards_are_counted_anew_in_each_step(self):
        module = self.times.watch(torch.nn.Linear(2, 2), number=3)
        for _ in range(2):
            losses = [module(torch.ones(1, 2)).sum() for _ in range(2)]
            for loss in losses:
                loss.backward()
            self.assertEqual(self.actions(), ['3F0', '3F1', '3B0', '3B1'])

    def test_a_backward_ends_with_its_last_gradient(self):
        def sleep(gradient):
            time.sleep(0.03)

        module = self.times.watch(torch.nn.Linear(2, 2), number=0)
        module.weight.register_hook(sleep)
        module(torch.ones(1, 2)).sum().backward()  # no input needs a gradient
        self.actions()
        (_, begin, end) = read(self.folder)[-1][0][1]
        self.assertGreaterEqual(end - begin, 0.03)

    def test_evaluations_are_left_out(self):
        module = self.times.watch(torch.nn.Linear(2, 2), number=0)
        module.eval()(torch.ones(1, 2))
        module.train()(torch.ones(1, 2)).sum().backward()
        self.assertEqual(self.actions(), ['0F0', '0B0'])

    def test_recomputation_is_a_part_of_the_backward(self):
        module = self.times.watch(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()), number=0)
        with set_checkpoint_early_stop(False):  # else the second forward ends before its hooks
            checkpoint(module, torch.ones(1, 2), use_reentrant=False).sum().backward()
        self.assertEqual(self.actions(), ['0F0', '0B0'])

    def test_several_outputs_begin_one_backward(self):
        class Two(torch.nn.Linear):
            def forward(self, x):
                return {'a': super().forward(x), 'b': [super().forward(x) * 2]}

        out = self.times.watch(Two(2, 2), number=0)(torch.ones(1, 2))
        (out['a'] + out['b'][0]).sum().backward()
        self.assertEqual(self.actions(), ['0F0', '0B0'])

    def test_a_module_needs_the_number_of_its_stage(self):
        with self.assertRaisesRegex(ValueError, r'watch\(module\) needs the number of its stage'):
            self.times.watch(torch.nn.Linear(2, 2))


if __name__ == '__main__':
    unittest.main()
