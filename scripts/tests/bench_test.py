"""plumbline-bench: what it records, and what it says about recorded runs. $PLUMBLINE_BENCH is the program."""

import copy
import getpass
import json
import os
import random
import re
import socket
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema

ROOT = Path(__file__).resolve().parents[2]
BENCH = os.environ['PLUMBLINE_BENCH']
SCHEMA = json.loads((ROOT / 'conformance/schema/bench.schema.json').read_text(encoding='utf-8'))
COMPARE = Path('/usr/share/benchmark/compare.py')  # of Debian's libbenchmark-tools; needs scipy


def sample_run(commit, step, allocations=17, seed=0):
    """A run with 20 samples around `step`, with noise of 1 % and a quiet machine."""
    noise = random.Random(f'{commit} {seed}')
    return {'schema': 'plumbline-bench/1', 'date': '2026-11-25T03:09:46Z', 'commit': commit, 'modified': False,
            'version': '0.1.0', 'machine': {'hardware': 'a processor', 'libtorch': '2', 'mpi': 'none', 'compiler': 'g++'},
            'probe': [0.005, 0.00501, 0.00499],
            'benchmarks': [{'name': 'a/b', 'figures': [
                {'name': 'step', 'unit': 's', 'kind': 'timed', 'better': 'lower',
                 'samples': [step * (1 + abs(noise.gauss(0, 0.01))) for _ in range(20)]},
                {'name': 'allocations', 'unit': 'allocations', 'kind': 'counted', 'better': 'lower', 'tolerance': 0.002,
                 'samples': [allocations]}]}]}


class Bench(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_bench(self, *words, code=0):
        environment = {**os.environ, 'OMP_NUM_THREADS': '1'}
        done = subprocess.run([BENCH, *map(str, words)], capture_output=True, text=True, timeout=300, env=environment,
                              cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def write(self, name, *runs):
        path = self.folder / name
        path.write_text(''.join(json.dumps(run) + '\n' for run in runs), encoding='utf-8')
        return path


class Recorded(Bench):
    def check(self, path):
        text = path.read_text(encoding='utf-8')
        document = json.loads(text)
        jsonschema.Draft202012Validator(SCHEMA).validate(document)
        self.assertGreater(len(document['probe']), 5)
        for secret in (socket.gethostname(), getpass.getuser(), str(Path.home()), str(self.folder), str(ROOT)):
            if len(secret) > 4:  # 'root' may be part of another word
                self.assertNotIn(secret, text)
        return {one['name']: {figure['name']: figure for figure in one['figures']} for one in document['benchmarks']}

    def test_micro_records_every_repetition_as_google_benchmark_shows_it(self):
        # transport: times and a counter that is one; allocations: counted figures
        self.run_bench('micro', '--benchmark_filter=transport_threads/64|allocations/1f1b/1/16', '--benchmark_min_time=0.001',
                       '--benchmark_repetitions=6', '--json', 'a.json', '--history', 'h.jsonl', '--benchmark_out=real.json',
                       '--benchmark_out_format=json')
        figures = self.check(self.folder / 'a.json')
        self.assertEqual((self.folder / 'a.json').read_text(), (self.folder / 'h.jsonl').read_text())
        times = figures['micro/transport_threads/64/manual_time']
        self.assertEqual(set(times), {'real_time', 'half_round_trip'})
        allocations = figures['micro/engine_allocations/1f1b/1/16']
        self.assertEqual({name: figure['kind'] for name, figure in allocations.items()},
                         {'real_time': 'timed', 'cpu_time': 'timed', 'per_action': 'counted', 'torch_per_action': 'counted'})
        self.assertEqual({len(figure['samples']) for figure in times.values()}, {6})

        # the export against Google Benchmark's own file of the same repetitions
        self.run_bench('export', 'a.json', '-o', 'b.json')
        own, real = (json.loads((self.folder / name).read_text())['benchmarks'] for name in ('b.json', 'real.json'))
        scale = {'ns': 1, 'us': 1e3, 'ms': 1e6, 's': 1e9}
        real = [one for one in real if one['run_type'] == 'iteration']
        self.assertEqual(len(real), 12)
        for one in real:
            same = [other for other in own if other['name'] == f'micro/{one["name"]}' and
                    other['repetition_index'] == one['repetition_index']]
            self.assertEqual(len(same), 1)
            taken = set(one) - {'label'}
            self.assertLessEqual(taken - {'half_round_trip'}, set(same[0]), 'a member of the real format is missing')
            factor = scale[one['time_unit']] / scale[same[0]['time_unit']]
            for name in ('real_time', *(['cpu_time'] if 'transport' not in one['name'] else [])):
                self.assertAlmostEqual(same[0][name] / (one[name] * factor), 1, delta=1e-6)
            for name in ('run_type', 'repetitions'):
                self.assertEqual(same[0][name], one[name])
        if not COMPARE.exists() or subprocess.run(['python3', '-c', 'import scipy'], capture_output=True).returncode:
            self.skipTest('the export was compared with the real format, but not by compare.py: it or scipy is missing')
        done = subprocess.run(['python3', COMPARE, 'benchmarks', self.folder / 'b.json', self.folder / 'b.json'],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('micro/transport_threads/64/manual_time_pvalue', done.stdout)

    def test_a_run_without_repetitions_is_refused(self):
        text = self.run_bench('micro', '--benchmark_filter=transport_threads/64/', '--benchmark_min_time=0.001', '--json', 'a.json',
                              '--benchmark_repetitions=2', '--benchmark_display_aggregates_only=true', code=2)
        self.assertIn('need each repetition', text)

    def test_every_counter_of_a_micro_benchmark_has_a_unit(self):
        units = (ROOT / 'bench/cli/micro_figures.cc').read_text(encoding='utf-8')
        found = 0
        for source in (ROOT / 'bench/micro').glob('*.cc'):
            for name, value in re.findall(r'counters\["(\w+)"\] =([^;]*);', source.read_text(encoding='utf-8')):
                found += 1
                if 'kInvert' not in value:  # a time, as Google Benchmark shows it
                    self.assertIn(f'{{"{name}", ', units, source.name)
        self.assertGreater(found, 20)

    def test_throughput_records_every_step(self):
        self.run_bench('throughput', '--schedule', 'gpipe', '--ranks', 2, '--microbatches', 2, '--sleep', '1/1', '--steps', 7,
                       '--json', 'a.json')
        figures = self.check(self.folder / 'a.json')['throughput/gpipe/sleep:1+1/ranks:2/microbatches:2/threads']
        self.assertEqual(len(figures['step']['samples']), 7)
        for step, ratio in zip(figures['step']['samples'], figures['over_ideal']['samples'], strict=True):
            self.assertGreater(step, 0.006)  # 3 forwards and 3 backwards of 1 ms
            self.assertAlmostEqual(step / ratio, 0.006)

    def test_instructions_may_come_from_valgrind(self):
        self.run_bench('instructions', '--counted', 1000, 1010, '--json', 'a.json')
        figures = self.check(self.folder / 'a.json')['instructions/forward+backward']
        self.assertEqual({name: figure['samples'] for name, figure in figures.items()},
                         {'module': [1000], 'interpreter': [1010], 'ratio': [1.01]})
        self.assertEqual(figures['ratio']['tolerance'], 0.002)


class Judged(Bench):
    def test_a_planted_regression_is_found_at_its_commit(self):
        runs = [sample_run(f'commit{i}', 0.1 if i < 9 else 0.106) for i in range(12)]
        self.write('h.jsonl', *runs)
        text = self.run_bench('history', 'h.jsonl', '--junit', 'j.xml', '--json', 'v.json', '--page', 'p.html', code=1)
        self.assertIn('regressed   a/b step: ', text)
        self.assertIn('since commit9 of 2026-11-25, 3 runs', text)
        self.assertIn('1 regressed, 1 unchanged', text)
        failures = ElementTree.parse(self.folder / 'j.xml').findall('.//failure')
        self.assertEqual(len(failures), 1)
        self.assertEqual(json.loads((self.folder / 'v.json').read_text())[0]['since']['commit'], 'commit9')
        self.assertIn('plumbline speed: 1 regressed', (self.folder / 'p.html').read_text())
        self.write('h.jsonl', *runs[:9])
        self.assertIn('2 unchanged', self.run_bench('history', 'h.jsonl'))

    def test_compare_tells_a_delay_from_nothing_and_counts_exactly(self):
        before, same = self.write('a', sample_run('a', 0.1)), self.write('b', sample_run('b', 0.1))
        self.assertIn('2 unchanged', self.run_bench('compare', before, same))
        self.assertIn('1 regressed', self.run_bench('compare', before, self.write('c', sample_run('c', 0.105)), code=1))
        self.assertIn('1 improved', self.run_bench('compare', before, self.write('c', sample_run('c', 0.09))))
        busy = sample_run('d', 0.1, 18)
        busy['probe'] = [0.006, 0.007, 0.008]
        text = self.run_bench('compare', before, self.write('d', busy), code=1)
        self.assertIn('allocations: 17 allocations -> 18 allocations', text)
        self.assertIn('cannot tell 1 figure: the steady loop moved', text)

    def test_nothing_known_is_not_a_pass(self):
        self.write('h.jsonl', sample_run('a', 0.1))
        self.assertIn('cannot tell 2 figures: measured once so far', self.run_bench('history', 'h.jsonl', code=3))

    def test_runs_are_added_all_or_none(self):
        self.write('h.jsonl', sample_run('a', 0.1))
        self.write('b.json', sample_run('b', 0.1))
        (self.folder / 'bad.json').write_text('{}\n')
        text = self.run_bench('history', 'h.jsonl', '--add', 'b.json', '--add', 'bad.json', code=2)
        self.assertIn('bad.json:1', text)
        self.assertEqual(len((self.folder / 'h.jsonl').read_text().splitlines()), 1)
        self.run_bench('history', 'h.jsonl', '--add', 'b.json')
        self.assertEqual(len((self.folder / 'h.jsonl').read_text().splitlines()), 2)

    def test_the_schema_and_the_program_refuse_the_same(self):
        validator = jsonschema.Draft202012Validator(SCHEMA)
        good = sample_run('a', 0.1)
        validator.validate(good)

        def figure(run, index=0):
            return run['benchmarks'][0]['figures'][index]

        changes = [lambda run: run.pop('machine'), lambda run: run['machine'].update(host='secret'),
                   lambda run: run.update(schema='plumbline-bench/2'), lambda run: run['probe'].append(0),
                   lambda run: figure(run).update(kind='felt'), lambda run: figure(run).update(better='faster'),
                   lambda run: figure(run).update(samples=[]), lambda run: figure(run).update(samples=[-1]),
                   lambda run: figure(run).update(tolerance=0.1), lambda run: figure(run, 1).update(tolerance=-1),
                   lambda run: figure(run, 1).update(samples=['1']), lambda run: figure(run).pop('unit'),
                   lambda run: run['benchmarks'][0].update(figures={}), lambda run: run.update(modified='no')]
        for number, change in enumerate(changes):
            with self.subTest(number):
                bad = copy.deepcopy(good)
                change(bad)
                self.assertFalse(validator.is_valid(bad))
                self.assertIn('bad:1: ', self.run_bench('export', self.write('bad', bad), '-o', 'out', code=2))


if __name__ == '__main__':
    unittest.main()
