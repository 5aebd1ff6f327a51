"""Backends as classes: run, pytest plugin and verbs of plumbline-case, against plumbline.

PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p backend_test.py
"""

import json
import os
import shlex
import sys
import unittest

from wheel_support import PROGRAM, TOOL, TOY, InFolder, export, start

from plumbline_case.results import KINDS  # after wheel_support, which finds the package

CASES = "exact-mlp-sum,exact-mlp-mean"

# Backends that break the rules in one case each.
PROBES = '''
import os, sys, time, zlib
import numpy as np
from plumbline_case import Results
from plumbline_case.examples.toy import Toy

print("a line of an import, which is no answer")

class Faulty(Toy):
    """With both cases in a job, the first one goes wrong in the way that a variable names."""
    def run(self, case, prepared):
        print("@plumbline is fun, says a line that is no event")
        if os.environ.get("FAULT") == "both":
            if case.id == "exact-mlp-mean": raise ValueError("no paper")
            print("no ink", file=sys.stderr); os._exit(1)
        fault = os.environ.get("FAULT") if case.id == "exact-mlp-mean" else None
        if fault == "raise": raise ValueError("two\\nlines")
        if fault == "put": Results().put(0, "los", None, 0, "loss", 0)
        if fault == "numpy": np.linalg.inv(np.zeros((2, 2)))
        if fault == "kill": os.kill(os.getpid(), 9)
        if fault == "exit": sys.exit("plumbline: out of paper")
        if fault == "leave": os._exit(0)
        if fault == "hang": time.sleep(1000)
        if fault == "wait": time.sleep(self.timeout); raise TimeoutError("no message of rank 1")
        if fault == "none": return None
        if fault == "nothing": return Results()
        return super().run(case, prepared)

class Split(Toy):
    """Every rank computes everything and delivers its share of the names; the last rank fails if it is told to."""
    def run(self, case, prepared):
        assert self.world_size == case.ranks, self.world_size
        if os.environ.get("FAULT") == "rank" and self.rank == case.ranks - 1 and case.id == "exact-mlp-mean":
            raise ValueError("no more")
        results = super().run(case, prepared)
        return Results({k: x for k, x in results.items() if zlib.crc32(k.split("/", 4)[4].encode()) % self.world_size == self.rank})

class AllRanks(Toy):
    """One process with the results of each rank: the last one says something else of a gradient, if it is told to."""
    def run(self, case, prepared):
        whole = super().run(case, prepared)
        of_rank = [Results(whole) for _ in range(case.ranks)]
        if os.environ.get("FAULT") == "copy" and case.id == "exact-mlp-mean":
            key = next(k for k in whole if "/grad/" in k)
            of_rank[-1][key] = of_rank[-1][key] + 1
        return of_rank[1:] if os.environ.get("FAULT") == "few" and case.id == "exact-mlp-mean" else of_rank

class Declines(Toy):
    operators = ()
    schedules = ["1f1b", "gpipe"]

class StartsFirst(Toy):
    def start(self, job):
        self.scale = job["seed"] / job["seed"]
    def prepare(self, case):
        assert self.scale == 1
        return super().prepare(case)

class StartsBadly(Toy):
    def start(self, job): raise ValueError("no connection")

class PlansBadly(Toy):
    def why_not(self, case): return {}["plan"]

class NotABackend:
    pass
'''


def line_of(words):
    """The place of the first line of the probes with these words, as it ends a reason."""
    return f" (probes.py:{next(n for n, line in enumerate(PROBES.splitlines(), 1) if words in line)})"


class Backends(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.corpus = os.path.join(cls.folder, "corpus")
        export(cls.corpus, *CASES.split(","), "mlp")
        cls.probes = cls.written("probes.py", PROBES)

    def setUp(self):
        self.reports = 0

    def run_cases(self, spec, *more, **environment):
        """(exit code, the sentences, standard error, the report's folder)"""
        self.reports += 1
        report = os.path.join(self.folder, f"{self.id()}-{self.reports}")
        words = [*TOOL, "run", "--backend", spec, "--corpus", self.corpus, "--report", report]
        done = start([*words, *more], **environment)
        return done.returncode, done.stdout.splitlines()[:-1], done.stderr, report

    def faulty(self, name, **environment):
        return self.run_cases(f"{self.probes}:{name}", "--case", CASES, **environment)

    def test_right_and_wrong_scale_as_plumbline_says(self):
        for name, code in ("Toy", 0), ("WrongScale", 1):
            found, lines, _, report = self.run_cases(f"{TOY}:{name}", "--case", CASES)
            self.assertEqual(found, code)
            theirs = os.path.join(self.folder, f"theirs-{name}")
            command = shlex.join([*TOOL, "backend", f"{TOY}:{name}"])
            for case in CASES.split(","):
                words = ["run", "--backend", command, "--case", case, "--schedule", "1f1b", "--ranks", "2", "--report"]
                start([PROGRAM, *words, theirs])
                with open(os.path.join(theirs, "report.json"), encoding="utf-8") as file:
                    said = json.load(file)["verdicts"][0]["sentence"]
                self.assertIn(said, lines)
                self.assertTrue(said.startswith("FAIL" if code else "PASS"), said)
            checked = start([PROGRAM, "check", report])
            self.assertEqual(checked.returncode, code, checked.stderr)
            self.assertIn("the folder is consistent: 2 runs, 0 problems", checked.stdout)
            again = start([*TOOL, "check", report, "--corpus", self.corpus])
            self.assertEqual((again.returncode, again.stdout.splitlines()[:-1]), (code, lines))

    def test_what_goes_wrong_in_one_case(self):
        for fault, expected in (
            ("raise", f"ERROR exact-mlp-mean x 1f1b (2 ranks, own): ValueError: two lines{line_of('two')}"),
            ("put", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): ValueError: kind of result 'los': expected one of "
             f"{', '.join(KINDS)}{line_of('los')}"),
            ("numpy", f"ERROR exact-mlp-mean x 1f1b (2 ranks, own): LinAlgError: Singular matrix{line_of('linalg')}"),
            ("kill", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): killed by signal 9 (Killed)"),
            ("exit", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): out of paper"),
            ("leave", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): ended with exit code 0"),
            ("wait", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): TimeoutError: no message of rank 1"),
            ("none", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): TypeError: run() returned NoneType; expected "),
            ("hang", "TIMEOUT exact-mlp-mean x 1f1b (2 ranks, own): no event in time"),
            ("nothing", "FAIL exact-mlp-mean x 1f1b (2 ranks, own): step 0, stage 0, micro-batch 0: forward "),
        ):
            more = ["--timeout", "10"] if fault in ("hang", "wait") else []
            with self.subTest(fault):
                code, lines, errors, report = self.run_cases(f"{self.probes}:Faulty", "--case", CASES, *more, FAULT=fault)
                self.assertEqual(code, 1, errors)
                self.assertTrue(lines[0].startswith(expected), lines)
                self.assertTrue(lines[1].startswith("PASS exact-mlp-sum x 1f1b"), lines)
                again = start([*TOOL, "check", report, "--corpus", self.corpus])
                self.assertEqual(again.stdout.splitlines()[:-1], lines)

    def test_an_exception_of_an_earlier_case_is_not_the_reason(self):
        _, lines, _, _ = self.faulty("Faulty", FAULT="both")
        self.assertEqual([line.partition("own): ")[2] for line in lines], [f"ValueError: no paper{line_of('paper')}", "no ink"])

    def test_exceptions_outside_of_cases_have_their_place(self):
        for name, expected in (
            ("StartsBadly", f"run: ValueError: no connection{line_of('connection')}"),
            ("PlansBadly", f"plan: exited with code 1: KeyError: 'plan'{line_of('plan')}"),
        ):
            self.assertEqual(self.faulty(name)[::2], (3, f"plumbline-case: {expected}\n"))

    def test_a_process_for_each_rank(self):
        split = f"{self.probes}:Split"
        code, lines, errors, report = self.run_cases(split, "--case", CASES, "--ranks", "2")
        self.assertEqual((code, len(lines)), (0, 2), (lines, errors))
        files = os.path.join(report, "results", "own-2", "1f1b", "exact-mlp-sum")
        self.assertEqual(sorted(os.listdir(files)), ["rank0.safetensors", "rank1.safetensors"])
        code, lines, _, report = self.run_cases(split, "--case", CASES, "--ranks", "2", FAULT="rank")
        self.assertEqual(code, 1)
        self.assertEqual(lines[0], f"ERROR exact-mlp-mean x 1f1b (2 ranks, own): rank 1: ValueError: no more{line_of('no more')}")
        self.assertTrue(lines[1].startswith("PASS exact-mlp-sum"), lines)

    def test_the_results_of_each_rank_from_one_process(self):
        code, lines, errors, report = self.faulty("AllRanks")
        self.assertEqual((code, len(lines)), (0, 2), (lines, errors))
        files = os.path.join(report, "results", "own-2", "1f1b", "exact-mlp-sum")
        self.assertEqual(sorted(os.listdir(files)), ["rank0.safetensors", "rank1.safetensors"])
        for fault, words in ("copy", "rank 1: ranks disagree on 0/grad/"), ("few", "TypeError: run() returned list; expected "):
            code, lines, _, _ = self.faulty("AllRanks", FAULT=fault)
            self.assertEqual(code, 1)
            self.assertIn(words, lines[0])
            self.assertTrue(lines[1].startswith("PASS exact-mlp-sum"), lines)

    def test_unsupported_and_unjudged_cases_are_counted_and_do_not_pass(self):
        code, lines, _, _ = self.faulty("Declines")
        self.assertEqual((code, lines), (3, ["UNSUPPORTED 2 x: operators beyond those supported: aten::abs, aten::linear"]))
        code, lines, _, _ = self.run_cases(f"{self.probes}:Faulty", "--case", "mlp")
        self.assertEqual(code, 3)

    def test_wrong_use_is_one_line(self):
        for words, part in (
            (["run", "--backend", "no/file.py:Toy"], "no file no/file.py"),
            (["run", "--backend", f"{self.probes}:NotABackend"], "no class NotABackend that derives"),
            (["run", "--backend", f"{TOY}:Toy", "--case", "nothing"], "no case matches 'nothing'; nearest: exact-mlp-"),
            (["run", "--backend", f"{TOY}:Toy", "--ranks", "3"], "--ranks 3: the corpus has cases on 2 ranks"),
            (["run", "--backend", f"{TOY}:Toy", "--corpus", "/nowhere"], "/nowhere: no cases"),
            (["check", self.corpus], "no run.json"),
            (["backend", f"{TOY}:Toy", "plan", "--job", "/nowhere"], "/nowhere"),
        ):
            corpus = [] if "--corpus" in words or words[0] == "backend" else ["--corpus", self.corpus]
            done = start([*TOOL, *words, *corpus])
            self.assertIn(done.returncode, (2, 3), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertIn(part, done.stderr)

    def test_cases_as_tests(self):
        """The plugin is not installed here: -p loads what the entry point loads."""
        plugin = [sys.executable, "-m", "pytest", "-p", "plumbline_case.pytest_plugin", "-rs", "-q", self.folder + "/empty"]
        os.makedirs(self.folder + "/empty", exist_ok=True)
        options = ["--plumbline-corpus", self.corpus, "--plumbline-cases", CASES]
        right = start([*plugin, *options, "--plumbline-backend", f"{TOY}:Toy"])
        self.assertEqual(right.returncode, 0, right.stdout)
        self.assertIn("2 passed", right.stdout)
        wrong = start([*plugin, *options, "--plumbline-backend", f"{TOY}:WrongScale"])
        self.assertEqual(wrong.returncode, 1, wrong.stdout)
        self.assertIn("FAIL exact-mlp-sum x 1f1b (2 ranks, own): step 0: gradient `", wrong.stdout)
        declined = start([*plugin, *options, "--plumbline-backend", f"{self.probes}:Declines"])
        self.assertIn("operators beyond those supported: aten::abs, aten::linear", declined.stdout)
        self.assertIn("2 skipped", declined.stdout)
        started = start([*plugin, *options, "--plumbline-backend", f"{self.probes}:StartsFirst"])
        self.assertIn("2 passed", started.stdout)
        inert = start([sys.executable, "-m", "pytest", "-p", "plumbline_case.pytest_plugin", "-q", self.folder + "/empty"])
        self.assertIn("no tests ran", inert.stdout)


if __name__ == "__main__":
    unittest.main()
