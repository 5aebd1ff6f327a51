"""adapter.py prove --corpus DIR [OPTIONS]: is every result computed as in the unsplit model, for all inputs?

The engine runs each case on its ranks; every value carries the identity of the term that made it. The unsplit model gives
the expected terms. A refutation names the operator, the stage and the micro-batch (docs/proof.md).
"""

import argparse
import contextlib
import json
import os
import pickle
import sys
import tempfile
import traceback
from collections import Counter

from ..backend import names
from ..case import load
from ..corpus import entries, select
from ..number_text import one_line
from ..schema import FormatError
from ..torch_distributed.forked import execute_cases
from ..torch_distributed.messages import install
from .normalisations import NORMALISATIONS, VERSION
from .sums import exact_text

EXIT = "exit: 0 all proven, 1 one is refuted or the engine stopped, 2 bad usage, 3 none of the cases can be taken"
CLAIMS = {
    "computation": "the same operators and operands, in the same order of every sum",
    "sum": "equal over the real numbers; the order of a sum does not count, and factors commute with linear operators",
}
ASSUMPTIONS = [
    "a kernel is a function of the elements of its operands, of its other arguments, and of dtypes and sizes",
    "an operator writes only what its schema declares, and running statistics of batch norm",
    "different terms have different identities: the first 128 bits of a SHA-256",
    "numbers computed outside of tensors, and branches of the program, are those of this run",
    "both runs use the same code for the model, the loss and the optimizer: that of plumbline_case.torch",
    "a message whose bytes are those that its sender described is that message",
]


def parser():
    made = argparse.ArgumentParser(prog="adapter.py prove", description=__doc__.splitlines()[0], epilog=EXIT)
    made.add_argument("--corpus", required=True, metavar="DIR", help="the output folder of `plumbline export`")
    made.add_argument("--case", default="*", metavar="GLOB,...", help="only ids that match one of these")
    made.add_argument("--schedule", default="*", metavar="GLOB,...", help="only schedules that match one of these")
    made.add_argument("--ranks", type=int, metavar="N", help="only cases on N ranks")
    made.add_argument("--claim", choices=CLAIMS, default="computation", help="what is proven; " + "; ".join(
        f"{name}: {text}" for name, text in CLAIMS.items()))  # fmt: skip
    made.add_argument("--timeout", type=float, default=60.0, metavar="S", help="seconds to wait for a message")
    made.add_argument("--certificate", metavar="F.json", help="write what was proven there, and under which assumptions")
    return made


def main(backend, words):
    """The exit code. `backend` is a GlooBackend."""
    options = parser().parse_args(words)
    try:
        folder = os.path.dirname(os.path.abspath(options.certificate or "."))
        if not os.path.isdir(folder):
            raise FormatError(f"--certificate {options.certificate}: no folder {folder}")
        chosen = select(entries(options.corpus), options.case, options.schedule, options.ranks)
        cases = {entry: load(entry.folder) for entry in chosen}
    except (FormatError, OSError) as error:
        print(f"prove: {error}", file=sys.stderr)
        return 2
    install()
    backend.import_engine()
    from .unsplit import why_not_provable

    answer, refused = sys.stdout, Counter()
    report, taken = Report(options, answer), []
    for entry, case in cases.items():
        own = backend.schedules == "any" or entry.schedule in names(backend.schedules)
        reason = backend.declines(case) or why_not_provable(case) if own else "not a schedule of this engine"
        if reason:
            refused[reason] += 1
        else:
            taken.append(entry)
    with contextlib.redirect_stdout(sys.stderr):  # of the engine
        for ranks in sorted({entry.ranks for entry in taken}):
            of_ranks = [entry for entry in taken if entry.ranks == ranks]
            if why := prove(of_ranks, cases, ranks, backend, options, report.put):
                report.broken(f"on {ranks} rank{'' if ranks == 1 else 's'}: {why}")
    report.end(refused, backend)
    return report.exit_code()


def prove(chosen, cases, ranks, backend, options, put):
    """put(entry, proof) for each entry; all are on as many ranks. Returns why a rank failed after the last entry; "" if none
    did."""
    from .proof import Proof

    with tempfile.TemporaryDirectory() as folder:

        def run(rank, first, store, tell):
            run_rank(rank, ranks, chosen[first:], first, store, backend, options, folder, tell)

        def tell(number, what, why=""):
            if what == "failed":
                put(chosen[number], Proof("stopped", why))
            elif what == "done":
                entry = chosen[number]
                kinds = set(backend.delivers) & set(cases[entry].json["results"])
                of_ranks = files(folder, number, ranks)
                put(entry, in_child(lambda: judge(entry.folder, of_ranks, kinds, options.claim)))

        return execute_cases(len(chosen), ranks, run, tell)


def files(folder, number, ranks):
    return [os.path.join(folder, f"{number}.rank{rank}") for rank in range(ranks)]


def run_rank(rank, ranks, chosen, first, store, backend, options, folder, tell):
    import torch.distributed as dist

    from ..torch_distributed.gloo import process_group
    from .watch import watch_rank

    backend.rank, backend.world_size, backend.timeout = rank, ranks, options.timeout
    with process_group(store, rank, ranks, {"timeout_seconds": options.timeout, "seed": 0}):
        for number, entry in enumerate(chosen, first):
            if rank == 0:
                tell(number, "begins")
            try:
                messages = os.path.join(folder, f"{number}.messages")
                os.makedirs(messages, exist_ok=True)
                run = watch_rank(backend, entry.folder, rank, messages)
                with open(files(folder, number, ranks)[rank], "wb") as stream:
                    pickle.dump(run, stream)
                dist.barrier()
            except Exception as error:
                backend.failed(number, error, tell)
            if rank == 0:
                tell(number, "done")


def judge(folder, of_ranks, kinds, claim):
    import torch

    from .proof import compare
    from .watch import watch_unsplit

    torch.set_num_threads(1)
    ranks = []
    for file in of_ranks:
        with open(file, "rb") as stream:
            ranks.append(pickle.load(stream))
    return compare(watch_unsplit(folder), ranks, kinds, claim)


def in_child(work):
    """The result of work() in a forked process: autograd must not have run in the process that forks ranks."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            result = work()
        except Exception as error:
            from .proof import Proof

            traceback.print_exc()
            result = Proof("stopped", f"the unsplit model or the comparison: {type(error).__name__}: {one_line(str(error))}")
        with open(write, "wb") as stream:
            pickle.dump(result, stream)
        os._exit(0)
    os.close(write)
    with open(read, "rb") as stream:
        result = pickle.load(stream)
    os.waitpid(child, 0)
    return result


class Report:
    """A line for each run, a summary, the certificate."""

    def __init__(self, options, answer):
        self._options, self._answer, self._proofs, self._is_broken = options, answer, [], False

    def put(self, entry, proof):
        self._proofs.append((entry, proof))
        place = f"{entry.ranks} rank{'' if entry.ranks == 1 else 's'}, gloo"
        said = proof.why or f"{len(proof.results)} results"
        line = f"{proof.outcome.upper()} {entry.case} x {entry.schedule} ({place}): {said}"
        if proof.outcome == "proven" and proof.differ:
            line += f", {len(proof.differ)} of them in another order of the same sum"
        if proof.outcome == "proven" and proof.repeated:
            times = ", ".join(f"{count} x {op}" for op, count in sorted(proof.repeated.items()))
            line += f"; beyond what the unsplit run executes: {times}"
        self._say(line)

    def broken(self, why):
        """Of a failure outside of the runs."""
        self._is_broken = True
        print(f"prove: {why}", file=sys.stderr, flush=True)

    def end(self, refused, backend):
        counts = Counter(proof.outcome for _, proof in self._proofs)
        self._say("")
        same_sums = sum(p.outcome == "refuted" and all(d.factor == 1 for d in p.differ) for _, p in self._proofs)
        for outcome in ("proven", "refuted", "stopped"):
            more = f", of which {same_sums} are the expected sums in another order" if outcome == "refuted" else ""
            more = more if same_sums else ""
            if counts[outcome]:
                self._say(f"{outcome} {counts[outcome]}{more}")
        for reason, count in sorted(refused.items()):
            self._say(f"not taken {count}: {reason}")
        if self._options.certificate:
            with open(self._options.certificate, "w", encoding="utf-8") as file:
                json.dump(self._certificate(backend), file, indent=1)
            self._say(f"certificate: {self._options.certificate}")

    def exit_code(self):
        if not self._proofs:
            return 3
        return 0 if not self._is_broken and all(proof.outcome == "proven" for _, proof in self._proofs) else 1

    def _say(self, line):
        print(line, file=self._answer, flush=True)

    def _certificate(self, backend):
        runs = [
            {
                "case": entry.case,
                "schedule": entry.schedule,
                "ranks": entry.ranks,
                "outcome": proof.outcome,
                "why": proof.why,
                "results": proof.results,
                "differences": {d.key: "another sum" if d.factor is None else exact_text(d.factor) for d in proof.differ},
                "operators": proof.operators,
                "repeated": proof.repeated,
                "numbers_read_by": proof.read_numbers,
                "constants": proof.constants,
            }
            for entry, proof in self._proofs
        ]
        return {
            "format": "plumbline-engine-proof/1",
            "claim": CLAIMS[self._options.claim],
            "engine": {"name": backend.name, "version": backend.version, "libtorch": backend.libtorch},
            "runs": runs,
            "normalisations": {"version": VERSION, **NORMALISATIONS},
            "assumptions": ASSUMPTIONS,
        }
