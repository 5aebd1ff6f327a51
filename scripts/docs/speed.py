"""The tables of speed in README.md and docs/benchmarks.md, from the last runs of a history (bench/results.jsonl)."""

import json
import statistics

# (words, benchmark, figure): what says something on a shared machine, too
ROWS = [
    ('duration of a 1F1B step over the least possible one: 4 ranks as threads; a stage sleeps 5 ms forward, 10 ms backward',
     'throughput/1f1b/sleep:5+10/ranks:4/microbatches:8/threads', 'over_ideal'),
    ('the same with ranks as processes, over MPI', 'throughput/1f1b/sleep:5+10/ranks:4/microbatches:8/mpi', 'over_ideal'),
    ('the same for ZB-V, over MPI', 'throughput/zb-v/sleep:5+10/ranks:4/microbatches:8/mpi', 'over_ideal'),
    ('time to simulate one action of a schedule, such as a forward: 1F1B on 64 ranks',
     'micro/simulate_1f1b/ranks:64/microbatches:256', 'per_action'),
    ('memory for that action', 'micro/simulate_1f1b/ranks:64/microbatches:256', 'bytes_per_action'),
    ("allocations of plumbline's runtime for one action: 1F1B on 2 ranks, 64 micro-batches", 'micro/engine_allocations/1f1b/2/64',
     'per_action'),
    ('processor time of a 1F1B step, PyTorch over plumbline: tiny stages, 2 ranks, TCP',
     'peers/step/1f1b/mlp:4,1,16,8/ranks:2/microbatches:8/threads:1', 'pytorch_over_tcp_cpu'),
    ('duration of that step, PyTorch over plumbline',
     'peers/step/1f1b/mlp:4,1,16,8/ranks:2/microbatches:8/threads:1', 'pytorch_over_tcp'),
    ('processor time of a ZB-V step, likewise',
     'peers/step/zb-v/mlp:4,1,16,8/ranks:2/microbatches:8/threads:1', 'pytorch_over_tcp_cpu'),
    ('time for the minimum cut and the partition of the joint graph of 2 transformer blocks, PyTorch over plumbline',
     'peers/partition/transformer:4,128,256,2/min_cut', 'pytorch_over_ours'),
]
IN_README = [ROWS[0], ROWS[3], ROWS[6], ROWS[7]]


def value_text(value, unit):
    if unit == 's':
        for size, name in ((1, 's'), (1e-3, 'ms'), (1e-6, 'µs'), (1e-9, 'ns')):
            if value >= size or name == 'ns':
                return f'{value / size:.3g} {name}'
    if unit == '1':
        return f'{value:.3f}' if value < 100 else f'{value:.0f}'
    return f'{value:.4g} {unit}'


def table(history, rows):
    """`history` is the text of the file. The newest run that has a figure is shown; every row must be in it."""
    newest = {}
    for line in history.splitlines():
        run = json.loads(line)
        for benchmark in run['benchmarks']:
            for figure in benchmark['figures']:
                newest[benchmark['name'], figure['name']] = (figure, run)
    lines, runs = ['| | median | middle half |', '|---|---|---|'], []
    for words, benchmark, name in rows:
        figure, run = newest[benchmark, name]
        runs.append(run)
        samples, unit = sorted(figure['samples']), figure['unit']
        low, high = samples[len(samples) // 4], samples[-1 - len(samples) // 4]
        between = f'{value_text(low, unit)} to {value_text(high, unit)}' if len(samples) > 1 else 'one sample'
        lines.append(f'| {words} | {value_text(statistics.median(samples), unit)} | {between} |')
    last = max(runs, key=lambda run: run['date'])
    commits = dict.fromkeys(run['commit'] + (' (modified sources)' if run['modified'] else '') for run in runs)
    machine = last['machine']
    return '\n'.join([*lines, '', f'Last measured on {last["date"][:10]}, at commit{"s" * (len(commits) > 1)} {", ".join(commits)}.',
                      f'The machine: {machine["hardware"]}, shared with other work; LibTorch {machine["libtorch"]}, {machine["mpi"]}, '
                      f'{machine["compiler"]}.'])
