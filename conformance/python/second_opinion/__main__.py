"""python -m second_opinion WHOLE.json RUN.json: whether a pipelined run is the unsplit model, on the whole batch and
micro-batch by micro-batch. The files are made by `plumbline prove --terms`, WHOLE.json with `--microbatches 1`;
scripts/second_opinion makes them. Prints JSON. Exit: 0, 2 if a file has something that has no meaning here.
"""

import json
import sys
import time

from second_opinion import term_file, values
from second_opinion.comparison import Judge, with_unsplit, with_whole_batch
from second_opinion.elements import Elements
from second_opinion.errors import Unsupported
from second_opinion.graph import Graph
from second_opinion.sweep import Sweep


def opinion(whole_path, path):
    began = time.monotonic()
    elements = Elements()
    graph = Graph(elements)
    whole, file = term_file.read(whole_path), term_file.read(path)
    whole_tensors = graph.tensors(whole.terms)
    variables, of_whole = set(graph.contents), len(elements)
    tensors = graph.tensors(file.terms)
    others = sorted(graph.contents.keys() - variables)
    if others:
        kind = others[0].split()[0]
        raise Unsupported(f"{path}: {others[0]} is no {kind} of {whole_path}; expected runs of one case")
    at_random = values.at_random(elements)
    sweep = Sweep(elements, at_random, of_whole)
    sweep.run()
    judge = Judge(elements, at_random, sweep)
    verdicts = {
        "whole batch": judge.verdict(with_whole_batch(whole, whole_tensors, file, tensors)),
        "micro-batches": judge.verdict(with_unsplit(file, tensors)),
    }
    return {
        "verdicts": {name: verdict._asdict() for name, verdict in verdicts.items()},
        "elements": len(elements),
        "answers": sweep.solver.answers,
        "seconds": time.monotonic() - began,
    }


def main():
    if len(sys.argv) != 3:
        print(f"second_opinion: {len(sys.argv) - 1} files; expected two, WHOLE.json and RUN.json", file=sys.stderr)
        return 2
    try:
        print(json.dumps(opinion(*sys.argv[1:])))
    except Unsupported as error:
        print(f"second_opinion: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
