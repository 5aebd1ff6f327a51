"""A backend that delivers the results of an earlier run again, with one change: for contract_protocol_test.py and events_test.py.

player.json beside it has `describe`, the answer to describe; `source`, a pattern of folders with its results; and optionally
  changes   [[pattern of keys, what to do with each such result], ...]: see CHANGES
  add       {key: key of the result that it copies}
  events    which events it prints: "all", or see `events`
"""

import glob
import json
import os
import re
import sys

from tensor_files import read_tensors, write_tensors

CHANGES = {
    "drop": lambda dtype, shape, data: None,
    "other value": lambda dtype, shape, data: (dtype, shape, bytes(byte ^ 1 for byte in data)),
    "F64": lambda dtype, shape, data: ("F64", shape, bytes(2 * len(data))),
    "flat": lambda dtype, shape, data: (dtype, [len(data) // 4], data),
}


def changed(tensors, options):
    tensors |= {key: tensors[of] for key, of in options.get("add", {}).items() if of in tensors}
    for pattern, change in options.get("changes", []):
        tensors = {k: CHANGES[change](*t) if re.search(pattern, k) else t for k, t in tensors.items()}
    return {key: tensor for key, tensor in tensors.items() if tensor is not None}


def events(kind, number):
    """What to print before and after case `number`."""
    begins, done = f"@plumbline case {number} begins", f"@plumbline case {number} done"
    return {
        "all": ([begins], [done]),
        "without begins": ([], [done]),
        "failed": ([begins], [f"@plumbline case {number} failed: no ink"]),
        "failed without begins": ([], [f"@plumbline case {number} failed: no ink"]),
        "from every rank": ([begins, begins], [done, done]),
        "with CR": ([begins], [done + "\r"]),
        "after other words": (["rank 0: " + begins], ["rank 0: " + done]),
        "among other words": (["", "loading", begins, "@ case", "@plumbline: half a word"], ["x" * 9000, done]),
    }[kind]


def run(options, job, out):
    numbers = range(len(job["cases"]))
    for number in reversed(numbers) if options.get("order") == "backwards" else numbers:
        case = job["cases"][number]
        before, after = events(options.get("events", "all"), number)
        for line in before:
            print(line, flush=True)
        if case["id"] in options.get("crashes in", []):
            sys.exit("ValueError: no more")
        target = os.path.join(out, case["results"])
        assert os.path.isdir(out) and sys.stdin.read() == "" and os.environ["OMP_NUM_THREADS"] == "1"
        assert os.path.samefile(out, os.path.dirname(sys.argv[sys.argv.index("--job") + 1]))
        os.makedirs(os.path.dirname(target), exist_ok="events" in options)  # fails if plumbline has made it
        for source in glob.glob(os.path.join(options["source"], case["results"] + "*.safetensors")):
            name = target + source[source.rindex("rank") + 4 :]
            write_tensors(name + ".new", changed(read_tensors(source), options))
            os.rename(name + ".new", name)
        for line in after:
            print(line, flush=True)


def main():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "player.json"), encoding="utf-8") as file:
        options = json.load(file)
    verb, words = sys.argv[1], dict(zip(sys.argv[2::2], sys.argv[3::2]))
    if verb == "describe":
        return print(json.dumps(options["describe"]))
    with open(words["--job"], encoding="utf-8") as file:
        job = json.load(file)
    if verb == "plan":
        return print(json.dumps([{"id": c["id"], "schedule": c["schedule"], "supported": True} for c in job["cases"]]))
    return run(options, job, words["--out"])


main()
