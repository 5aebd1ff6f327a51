"""The verb `prove` of an adapter, on PyTorch's pipelining with real ranks; and the unsplit model that gives the expected
terms, against the numbers of plumbline's oracle. In the environment of scripts/peer:

    export PLUMBLINE_PROGRAM=$PWD/build/plumbline
    scripts/tests/in_peer.sh -m unittest discover -s conformance/python/tests -p 'prove_*_test.py'
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ENGINES = os.path.join(HERE, "..")
sys.path.insert(0, ENGINES)

from plumbline_case.prove.proof import COMPARED  # noqa: E402
from plumbline_case.prove.unsplit import Unsplit, why_not_provable  # noqa: E402
from plumbline_case.torch import load, read_tensors  # noqa: E402

PROGRAM = os.environ["PLUMBLINE_PROGRAM"]
ADAPTER = os.path.join(ENGINES, "torch_pipelining", "adapter.py")


def plumbline(*words):
    return subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True, timeout=600).stdout


def export(folder, cases, schedule, *more):
    plumbline("export", "--case", cases, "--schedule", schedule, "--ranks", "2", "-o", folder, *more)


def prove(*words):
    command = [sys.executable, ADAPTER, "--stages", "static", "prove", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return done.returncode, done.stdout, done.stderr


class PyTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.corpus, cls.certificate = (os.path.join(cls.folder.name, name) for name in ("cases", "proof.json"))
        export(cls.corpus, "exact-mlp-sum,exact-accumulate,exact-summed-views,exact-tied,exact-dp-momentum,exact-two-heads-divided", "1f1b")
        export(cls.corpus, "exact-mlp-sum", "interleaved-zero-bubble")
        export(cls.corpus, "exact-tied", "dualpipe-v")
        cls.code, cls.out, cls.errors = prove("--corpus", cls.corpus, "--certificate", cls.certificate)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def line(self, case, schedule):
        found = re.search(rf"^\w+ {case} x {schedule} \(2 ranks, gloo\): .*$", self.out, re.M)
        self.assertIsNotNone(found, self.out + self.errors)
        return found[0]

    def test_right_runs_are_proven(self):
        for schedule in ("1f1b", "interleaved-zero-bubble"):
            self.assertEqual(
                self.line("exact-mlp-sum", schedule), f"PROVEN exact-mlp-sum x {schedule} (2 ranks, gloo): 40 results"
            )

    def test_known_faults_are_refuted_at_their_place(self):
        """Those of docs/hall_of_bugs.md: accumulated gradients and a shared parameter that are divided again, and gradients in
        one memory to which each micro-batch is added twice."""
        self.assertRegex(
            self.line("exact-accumulate", "1f1b"),
            r"^REFUTED .*: grad layers\.0\.fc\.bias of step 2: stage 0, micro-batch 0 \(B\): in a sum of 8 addends, "
            r"aten::sum\.dim_IntList of micro-batch 0 and 3 more: 1/4 of it expected, 1/\d+ of it found; .*; "
            r"the numbers of 16 of 16 differ$",
        )
        self.assertRegex(
            self.line("exact-tied", "dualpipe-v"),
            r"^REFUTED .*: grad tok\.weight of step 0: stage 0, micro-batch 3 \(W\): aten::(mm|embedding_dense_backward) "
            r"of micro-batch 0: 1 times expected, 1/4 of it found, as operand 0 of aten::div\.Tensor; .* 1 is another sum; "
            r"the numbers of 1 of 1 differ$",
        )
        self.assertRegex(
            self.line("exact-summed-views", "1f1b"),
            r"^REFUTED .*: grad left\.fc\.bias of step 0: stage 1, micro-batch 0 \(B\): in a sum of 4 addends, "
            r"aten::sum\.dim_IntList of micro-batch 0: 1 times expected, 1/4 of it found, as operand 0 of aten::div\.Tensor; ",
        )

    def test_the_same_sum_in_another_order(self):
        """The adapter adds the copies of a shared parameter after PyTorch has divided each."""
        self.assertRegex(
            self.line("exact-tied", "1f1b"),
            r"^REFUTED .*: grad tok\.weight of step 0: the same sum, .*; as sums, of the results that differ: 1 is "
            r"the expected sum in another order; their numbers are equal$",
        )

    def test_the_summary(self):
        self.assertEqual(self.code, 1, self.errors)
        self.assertRegex(
            self.out,
            r"\n\nproven 3\nrefuted 4, of which 1 are the expected sums in another order\n"
            r"not taken 1: data-parallel replicas: .*\ncertificate: .*\n$",
        )

    def test_the_certificate_names_what_plumbline_names(self):
        """Terms of the forward and of parameters have the identities that plumbline's own proof gives them."""
        file = os.path.join(self.folder.name, "own.json")
        for case, count in (("exact-mlp-sum", 24), ("exact-two-heads-divided", 28)):
            plumbline("prove", "--case", case, "--schedule", "1f1b", "--ranks", "2", "--certificate", file)
            with open(file, encoding="utf-8") as own, open(self.certificate, encoding="utf-8") as theirs:
                (own,), theirs = json.load(own)["runs"], json.load(theirs)["runs"]
            (run,) = (run for run in theirs if (run["case"], run["schedule"]) == (case, "1f1b"))
            # Here, values between stages are not compared.
            of_model = {key for key in own["results"] if key.split("/")[1] not in ("forward", "backward")}
            self.assertEqual(run["results"].keys(), of_model)
            forward = [key for key in own["results"] if key.split("/")[1] in ("output", "loss", "param")]
            self.assertEqual(len(forward), count)
            other = [key for key in forward if run["results"][key] != own["results"][key]]
            # A loss that is the sum of two: here, their order does not count, and some sums have the other one.
            self.assertEqual([key for key in other if case == "exact-mlp-sum" or key.split("/")[1] != "loss"], [])
            self.assertLess(len(other), 4)

    def test_bad_usage(self):
        for words, why in (
            (["--corpus", "/nowhere"], r"^prove: /nowhere: no cases; expected the output folder of `plumbline export`\n$"),
            (["--corpus", self.corpus, "--case", "exact-mlp"], r"^prove: no case matches 'exact-mlp'; nearest: .*\n$"),
            (["--corpus", self.corpus, "--certificate", "/nowhere/x.json"], r"^prove: --certificate .*: no folder /nowhere\n$"),
        ):
            code, out, errors = prove(*words)
            self.assertEqual((code, out), (2, ""))
            self.assertRegex(errors, why)


class HeldAgainstNumbers(unittest.TestCase):
    def test_a_verdict_that_the_proof_does_not_share_is_found(self):
        """scripts/prove_peer on a report by hand, in which a wrong run passes."""
        with tempfile.TemporaryDirectory() as folder:
            backend = os.path.join(folder, "backend.toml")
            with open(backend, "w", encoding="utf-8") as file:
                file.write(f"argv = {json.dumps([sys.executable, ADAPTER, '--stages', 'static'])}\n")
            runs = {"exact-mlp-sum": "pass", "exact-summed-views": "pass", "exact-accumulate": "xfail", "exact-tied": "unsupported"}
            with open(os.path.join(folder, "results.jsonl"), "w", encoding="utf-8") as file:
                for case, status in runs.items():
                    file.write(json.dumps({"case": case, "schedule": "1f1b", "ranks": 2, "status": status}) + "\n")
            script = os.path.join(HERE, "..", "..", "..", "scripts", "prove_peer")
            done = subprocess.run([script, PROGRAM, backend, folder], capture_output=True, text=True, timeout=600)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stdout, r"\nexact-summed-views x 1f1b: pass, but refuted grad left\.fc\.bias of step 0: .*\n")
            self.assertTrue(done.stdout.endswith("pass, proven: 1\npass, refuted: 1\nxfail, refuted: 1\n"), done.stdout)


class UnsplitModel(unittest.TestCase):
    def test_its_numbers_are_the_oracle_s(self):
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder:
            cases = "exact-hooks,exact-shared-ends,exact-local-losses,exact-input-gradients,exact-weight-closures,exact-freeze"
            export(folder, f"{cases},exact-multi-io,exact-accumulate", "interleaved-1f1b", "--expected")
            folders = sorted(os.path.dirname(path) for path in glob.glob(f"{folder}/*/*/expected.safetensors"))
            self.assertEqual(len(folders), 8)
            for one in folders:
                with self.subTest(os.path.relpath(one, folder)):
                    case = load(one)
                    self.assertIsNone(why_not_provable(case))
                    results, expected = Unsplit(case).run(), read_tensors(os.path.join(one, "expected.safetensors"))
                    wanted = {key for key in expected if key.split("/")[1] in COMPARED}
                    self.assertEqual(wanted - results.keys(), set())
                    self.assertEqual([key for key in sorted(wanted) if not torch.equal(results[key], expected[key])], [])


if __name__ == "__main__":
    unittest.main()
