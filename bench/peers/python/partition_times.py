"""Python's side of `plumbline bench peers partition`: PyTorch's partitioner on the joint graph of a transformer or MLP.

usage: partition_times.py --seconds S --out DIR MODEL MODE...

filled_model.py describes MODEL, pytorch_partition_answers.py MODE. Writes DIR/graph.json, the joint graph and PyTorch's
answer for each mode, as scripts/pytorch_partitions does, and DIR/times.json: the seconds of calls, by mode, of at least
three and at least S seconds. Copying the graph, which a call changes, is not timed. Needs only torch.
exit: 0 done, 3 no torch here.
"""

import argparse
import copy
import json
import logging
import os
import sys
import time

try:
    import torch
    import torch._functorch.config as functorch_config
    import torch._functorch.partitioners as partitioners
    from torch._inductor.decomposition import select_decomp_table
except ImportError as error:
    sys.stdout.write(f'{sys.executable} cannot import torch ({error})')
    sys.exit(3)

from filled_model import LARGE, Layers, Shape, fill  # noqa: E402
from pytorch_joint_graph import graph_record, with_joint_graph  # noqa: E402
from pytorch_partition_answers import run_record, settings  # noqa: E402
from pytorch_partition_files import write  # noqa: E402

FEWEST_CALLS = 3


def seconds_of(joint, inputs, forward_outputs, mode, statics, least):
    seconds = []
    while len(seconds) < FEWEST_CALLS or sum(seconds) < least:
        copied = copy.deepcopy(joint)
        with functorch_config.patch(**settings(mode)):
            begin = time.perf_counter()
            partitioners.min_cut_rematerialization_partition(
                copied, inputs, num_fwd_outputs=forward_outputs, static_lifetime_input_indices=statics)
            seconds.append(time.perf_counter() - begin)
    return seconds


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1])
    parser.add_argument('--seconds', type=float, required=True)
    parser.add_argument('--out', required=True)
    parser.add_argument('model')
    parser.add_argument('modes', nargs='+')
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    shape = Shape(options.model)
    version = torch.__version__.split('+')[0]
    variant = f'{version}/inductor'
    file = {'format': 'plumbline-joint-graph/1', 'model': options.model, 'about': 'bench peers partition',
            'torch': [version], 'graphs': {}, 'variants': {}, 'runs': {}}
    times = {}

    def visit(joint, inputs, forward_outputs, statics):  # the indices of the parameters
        graph = graph_record(joint.graph, forward_outputs)
        file['graphs']['g0'] = graph
        primals = [node for node in graph['nodes'] if node['kind'] == 'primal']
        file['variants'][variant] = {'torch': version, 'decompositions': 'inductor', 'graph': 'g0', 'params': statics}
        table = {'nodes': {node['name']: node for node in graph['nodes']}, 'bytes': graph['storage_bytes'],
                 'primal': {node['out'].get('storage') for node in primals if node.get('out')}}
        for mode in options.modes:
            file['runs'][f'{variant}/{mode}/static=params'] = run_record(joint, inputs, forward_outputs, mode, statics, table)
            times[mode] = seconds_of(joint, inputs, forward_outputs, mode, statics, options.seconds)

    module = Layers(shape, 0, shape.layers)
    with_joint_graph(module, (fill(shape.sizes(), 0, LARGE, 0),), select_decomp_table(), visit)
    write(file, os.path.join(options.out, 'graph.json'))
    with open(os.path.join(options.out, 'times.json'), 'w') as out:
        json.dump({'torch': torch.__version__, 'seconds': times}, out)


if __name__ == '__main__':
    main()
