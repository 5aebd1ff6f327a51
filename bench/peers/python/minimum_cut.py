"""Python's side of `plumbline bench peers cut`: a minimum cut by networkx, as PyTorch's partitioner calls it.

usage: minimum_cut.py NETWORK.json --seconds S --out TIMES.json

bench/peers/cut_network.h describes the contents of the files. Needs only networkx. exit: 0 done, 3 no networkx here.
"""

import argparse
import json
import statistics
import sys
import time

try:
    import networkx
except ImportError as error:
    sys.stdout.write(f'{sys.executable} cannot import networkx ({error})')
    sys.exit(3)

SOURCE, SINK = 0, 1


def network(described):
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(described['vertices']))
    for begin, end, capacity in zip(described['from'], described['to'], described['capacity']):
        if capacity is None:
            graph.add_edge(begin, end)  # without a capacity: unbounded
        else:
            graph.add_edge(begin, end, capacity=capacity)
    return graph


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split('usage: ')[1])
    parser.add_argument('network')
    parser.add_argument('--seconds', type=float, required=True)
    parser.add_argument('--out', required=True)
    options = parser.parse_args()
    with open(options.network) as file:
        described = json.load(file)
    builds, cuts = [], []
    while not cuts or sum(cuts) < options.seconds:
        begin = time.perf_counter()
        graph = network(described)
        middle = time.perf_counter()
        value, (_, sink_side) = networkx.minimum_cut(graph, SOURCE, SINK)
        cuts.append(time.perf_counter() - middle)
        builds.append(middle - begin)
    times = {'networkx': networkx.__version__, 'build': statistics.median(builds), 'cut': statistics.median(cuts),
             'value': value, 'sink_side': sorted(sink_side)}
    with open(options.out, 'w') as file:
        json.dump(times, file)


if __name__ == '__main__':
    main()
