"""Which results exist, which of them are zeros, and how often hooks are called: derived here from the exported files by the
rules of INTERPRETING.md alone, and compared with plumbline's expected results.

    PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p contract_results_test.py
"""

import csv
import glob
import json
import os
import re
import struct
import subprocess
import tempfile
import unittest

from tensor_files import read_tensors

PROGRAM = os.environ["PLUMBLINE_PROGRAM"]
REAL = ("F64", "F32", "F16", "BF16")
# Cases that update parameters, and exact ones of every reason for which a result is absent or zero.
UPDATED = "clip,clip-read,clip-unused,decay-none,loss-scale-local,resume-adamw-unfrozen,save-skipped-step,skip-overflow-clip,train-mlp"
CASES = ("absent-value*,accumulate*,boundary-hooks*,dict,eval-*,experts,freeze*,frozen*,hooks*,input-gradients*,late-*,loss-inside,"
         "added-losses,local-losses*,multi-io,none,read-after-*,optional-mask*,own-*,passed-through,resume-*,save-*,shared-*,skip,summed-views*,tied,unfreeze*,unused-*,views")


def values_in(argument):
    """The numbers of the values in an argument of a node."""
    if isinstance(argument, list):
        return [value for item in argument for value in values_in(item)]
    return [argument["value"]] if isinstance(argument, dict) and "value" in argument else []


def reached(stage, roots):
    """The values of a stage on which one of `roots` depends."""
    reach = set(roots)
    for node in reversed(stage["nodes"]):
        makes = node["results"][:1] if node["op"] == "aten::batch_norm" else node["results"]
        if node["op"] != "aten::detach" and any(value in reach for value in makes):
            for argument in node["arguments"].values():
                reach |= {value for value in values_in(argument) if stage["values"][value]["dtype"] in REAL}
    return reach


# The entries of the optimizer's state of a parameter that was updated.
ENTRIES = {"sgd": ("momentum_buffer",), "adamw": ("exp_avg", "exp_avg_sq", "step")}


class Derived:
    """The keys of all results of a case; `zeros` and `calls` say what is known of the values of some."""

    def __init__(self, folder):
        def document(name):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                return json.load(file)

        self.case, self.program = document("case.json"), document("program.json")
        with open(os.path.join(folder, "schedule.csv"), newline="", encoding="utf-8") as file:
            self.rows = list(csv.reader(file))
        self.keys, self.zeros, self.calls = set(), {}, {}
        earlier = self.program["programs"][0]["stages"][:-1]
        self.early_losses = sum(entry["to"] == "loss" for stage in earlier for entry in stage["outputs"])
        optimizer = self.case["optimizer"]
        self.details = optimizer is None
        self.trainable = {p["name"] for p in self.program["parameters"] if p["requires_grad"]}
        self.hooked = (
            set(self.trainable) if self.case["parameter_hooks"] or self.case.get("accumulation_hooks") else set()
        )
        self.with_gradient = set()
        saved = [name for name in read_tensors(os.path.join(folder, "tensors.safetensors")) if name.startswith("optimizer/")]
        self.updated = {name.split("/")[1] for name in saved}
        assert bool(saved) == ("resumes" in self.case)
        self.loss_output = self.program["programs"][0]["stages"][-1]["outputs"][0]["name"]
        for number, step in enumerate(self.case["steps"]):
            if step["kind"] in ("train", "eval"):
                self.batch(number, step)
            elif step["kind"] == "zero_grad":
                self.with_gradient.clear()
            elif step["kind"] == "freeze":
                self.trainable -= set(step["parameters"])
            elif step["kind"] == "unfreeze":
                self.trainable |= set(step["parameters"])
            elif step["kind"] == "read":
                self.keys |= {f"{number}/grad/-/-/{name}" for name in self.with_gradient}
            elif step["kind"] == "optimizer":
                self.updated |= self.with_gradient
                self.keys |= {f"{number}/grad-norm/-/-/norm"} if "clip" in optimizer else set()
        last = len(self.case["steps"]) - 1
        self.keys |= {f"{last}/{kind[:-1]}/-/-/{entry['name']}" for kind, named in
                      (("buffers", "buffers"), ("params", "parameters")) for entry in self.program[named]}
        if "optimizer-state" in self.case["results"]:
            self.keys |= {f"{last}/optimizer-state/-/-/{name}/{entry}"
                          for name in self.updated for entry in ENTRIES[optimizer["kind"]]}

    def detail(self, key):
        if self.details:
            self.keys.add(key)
        return key

    def batch(self, step, what):
        self.fresh = {}  # in this step: {(stage, replica): parameters that have accumulated a gradient}
        for microbatch, use in enumerate(what["microbatches"]):
            program = self.program["programs"][use["program"]]
            for boundary in program["boundaries"]:
                self.detail(f"{step}/forward/{boundary['producer']}/{microbatch}/{boundary['name']}")
            for entry in (entry for stage in program["stages"] for entry in stage["outputs"]):
                if entry["value"] is not None and entry["to"] == "model":
                    self.detail(f"{step}/output/-/{microbatch}/{entry['name']}")
                if entry["value"] is not None and entry["to"] == "loss":
                    self.keys.add(f"{step}/loss/-/{microbatch}/{entry['name']}")
            if what["loss"]:
                self.keys.add(f"{step}/loss/-/{microbatch}/loss")
        if what["kind"] == "eval":
            return
        for replica, row in enumerate(self.rows):
            for stage, microbatch in re.findall(r"(?<![0-9])([0-9]+)[BW]([0-9]+)", ";".join(row)):
                self.backward(step, int(stage), int(microbatch), replica, what)
        self.with_gradient |= set().union(*self.fresh.values())
        for name in self.with_gradient:
            self.detail(f"{step}/grad/-/-/{name}")

    def backward(self, step, s, microbatch, replica, what):
        program = self.program["programs"][what["microbatches"][microbatch]["program"]]
        stage, boundaries = program["stages"][s], {b["name"]: b for b in program["boundaries"]}
        added = [self.loss_output, *self.case["loss"].get("added", [])]
        roots = {
            "boundary": lambda e: boundaries[e["name"]]["has_gradient"],
            "model": lambda e: e["name"] in added,
            "loss": lambda e: True,
        }
        reach = reached(stage, [e["value"] for e in stage["outputs"] if e["value"] is not None and roots[e["to"]](e)])
        for entry in stage["inputs"]:
            name, value = entry["name"], entry["value"]
            if value is None:
                continue
            if entry["from"] == "boundary" and boundaries[name]["has_gradient"]:
                key = self.detail(f"{step}/backward/{s}/{microbatch}/{name}")
                if value not in reach:
                    self.zeros[key] = True
                if self.case["boundary_hooks"]:
                    self.calls[self.detail(f"{step}/hook-calls/{s}/{microbatch}/{name}")] = int(value in reach)
            if entry["from"] == "model" and self.case["input_gradients"]:
                if value in reach and stage["values"][value]["dtype"] in REAL:
                    of = "-" if self.case.get("whole_gradients") else microbatch
                    self.detail(f"{step}/input-grad/-/{of}/{name}")
        fresh = self.fresh.setdefault((s, replica), set())
        fresh |= {e["name"] for e in stage["parameters"] if e["value"] in reach and e["name"] in self.trainable}
        if s + 1 == len(program["stages"]) and what["loss"]:
            fresh |= set(self.case["loss"].get("parameters", [])) & set(self.trainable)
        for name in fresh:
            self.detail(f"{step}/partial/{s}/{microbatch}/{name}")
            if name in self.hooked:
                self.calls[self.detail(f"{step}/hook-calls/{s}/{microbatch}/{name}")] = 1
            if name in self.hooked and self.case.get("accumulation_hooks"):
                self.detail(f"{step}/accumulated/{s}/{microbatch}/{name}")


class ResultsFollowFromTheFiles(unittest.TestCase):
    def test_keys_zeros_and_calls(self):
        seen_zeros = seen_calls = seen_early = 0
        with tempfile.TemporaryDirectory() as folder:
            names = [f"exact-{name}" for name in CASES.split(",")] + UPDATED.split(",")
            subprocess.run([PROGRAM, "export", "--case", ",".join(names), "--expected", "-o", folder], check=True,
                           capture_output=True, timeout=600)  # fmt: skip
            exported = sorted(glob.glob(os.path.join(folder, "*", "*", "expected.safetensors")))
            self.assertGreater(len(exported), 40)
            for path in exported:
                derived, expected = Derived(os.path.dirname(path)), read_tensors(path)
                with self.subTest(os.path.relpath(os.path.dirname(path), folder)):
                    seen_early += derived.early_losses
                    # Which steps are skipped, the numbers decide.
                    missing = sorted(derived.keys - expected.keys())
                    if (derived.case["optimizer"] or {}).get("skip_nonfinite"):
                        self.assertEqual([key.split("/")[1] for key in missing], ["grad-norm"] * ("clip" in derived.case["optimizer"]))
                        derived.keys -= set(missing)
                        missing = []
                    self.assertEqual(missing, [], "not among the expected results")
                    self.assertEqual(sorted(expected.keys() - derived.keys), [], "not derived")
                    for key, calls in derived.calls.items():
                        self.assertEqual(expected[key], ("I64", [], struct.pack("<q", calls)), key)
                        seen_calls += 1
                    for key in derived.zeros:
                        self.assertEqual(expected[key][2].strip(b"\0"), b"", key)
                        seen_zeros += 1
        self.assertGreater(seen_calls, 100)
        self.assertGreater(seen_zeros, 0)
        self.assertGreater(seen_early, 0, "no loss stays in an early stage")


if __name__ == "__main__":
    unittest.main()
