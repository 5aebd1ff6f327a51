"""Writes, reads and joins files of the format "plumbline-joint-graph/1"."""

import gzip
import json
from pathlib import Path


def write(file, path):
    """Writes JSON with one node or run per line, to be readable and comparable; gzip if the name ends in .gz."""
    def lines():
        yield '{' + ', '.join(f'{json.dumps(k)}: {json.dumps(file[k])}' for k in ('format', 'model', 'about', 'torch')) + ',\n"graphs": {\n'
        for i, (key, graph) in enumerate(file['graphs'].items()):
            rest = ', '.join(f'{json.dumps(k)}: {json.dumps(v)}' for k, v in graph.items() if k != 'nodes')
            yield (',\n' if i else '') + f'{json.dumps(key)}: {{{rest}, "nodes": [\n' + ',\n'.join(json.dumps(n) for n in graph['nodes']) + ']}'
        for part in ('variants', 'runs'):
            yield '},\n' + json.dumps(part) + ': {\n' + ',\n'.join(f'{json.dumps(k)}: {json.dumps(v)}' for k, v in file[part].items())
        yield '}}\n'
    data = ''.join(lines()).encode()
    json.loads(data)
    Path(path).write_bytes(gzip.compress(data, mtime=0) if str(path).endswith('.gz') else data)


def read(path):
    data = Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b'\x1f\x8b' else data)


def join(paths):
    """Joins the files of one model from several versions of torch; equal graphs are kept once."""
    files = [read(p) for p in paths]
    if len({f['model'] for f in files}) != 1:
        raise SystemExit('--join takes the files of one model')
    joined = files[0] | {'torch': sorted(v for f in files for v in f['torch']), 'graphs': {}, 'variants': {}, 'runs': {}}
    for file in files:
        for name, variant in file['variants'].items():
            graph = file['graphs'][variant['graph']]
            key = next((k for k, g in joined['graphs'].items() if g == graph), f'g{len(joined["graphs"])}')
            joined['graphs'][key] = graph
            joined['variants'][name] = variant | {'graph': key}
        joined['runs'] |= file['runs']
    return joined
