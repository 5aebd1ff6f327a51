"""Backends as classes: run, pytest plugin and verbs of plumbline-case, against plumbline.

PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p backend_test.py
"""

import json
import os
import re
import shlex
import sys
import unittest
import unittest.mock

from wheel_support import IN_FULL, PROGRAM, TOOL, TOY, TYPED, InFolder, export, paste, sample, start

from plumbline_case.launchers import launched  # after wheel_support, which finds the package
from plumbline_case.results import KINDS

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
        if fault == "text": return Results({"0/loss/-/0/loss": np.array("a")})
        if fault == "nothing": return Results()
        return super().run(case, prepared)

class Split(Toy):
    """Every rank computes everything and delivers its share of the names; the last rank fails if it is told to."""
    def run(self, case, prepared):  # Split
        assert self.world_size == case.ranks, self.world_size
        if os.environ.get("FAULT") == "list": return [Results(), Results()]
        if os.environ.get("FAULT") == "leave":
            if self.rank == 1: os._exit(7)
            time.sleep(1)
            raise BrokenPipeError("a broken pipe")
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

class Few(Toy):
    delivers = ("input-grad",)

class OnGpu(Toy):
    device = "cuda"
    def run(self, case, prepared): raise ValueError("no ink")

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

class Needy(Toy):
    def __init__(self, config): pass

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
        """(exit code, the sentences, standard error, the report's folder). Every failure has a command that repeats it, and
        every error names the backend's log."""
        self.reports += 1
        report = os.path.join(self.folder, f"{self.id()}-{self.reports}")
        words = [*TOOL, "run", "-v", "--backend", spec, "--corpus", self.corpus, "--report", report]
        done = start([*words, *more], **environment)
        lines = self.without_log(done, report)
        sentences = [line for line in lines if not line.startswith("  repeat: ")]
        failures = [line for line in sentences if line.split()[0] in ("FAIL", "ERROR", "TIMEOUT")]
        self.assertEqual(len(lines) - len(sentences), len(failures), lines)
        return done.returncode, sentences, done.stderr, report

    def without_log(self, done, report):
        """The lines before the summary; those of errors without the name of the log, which they must have."""
        lines, said = done.stdout.splitlines()[:-1], f" (see {report}/backend.log)"
        for number, line in enumerate(lines):
            self.assertEqual(line.endswith(said), line.startswith(("ERROR ", "TIMEOUT ")), line)
            lines[number] = line.removesuffix(said)
        return lines

    def check(self, report):
        """(exit code, the sentences)"""
        done = start([*TOOL, "check", "-v", report, "--corpus", self.corpus])
        return done.returncode, self.without_log(done, report)

    def faulty(self, name, **environment):
        return self.run_cases(f"{self.probes}:{name}", "--case", CASES, **environment)

    def test_right_and_wrong_scale_as_plumbline_says(self):
        for name, code in ("Toy", 0), ("WrongScale", 1):
            found, lines, _, report = self.run_cases(f"{TOY}:{name}", "--case", CASES)
            self.assertEqual(found, code)
            theirs = os.path.join(self.folder, f"theirs-{name}")
            command = shlex.join([*TOOL, "backend", f"{TOY}:{name}"])
            words = ["run", "--backend", command, "--case", CASES, "--schedule", "1f1b", "--ranks", "2", "--report"]
            start([PROGRAM, *words, theirs])
            with open(os.path.join(theirs, "report.json"), encoding="utf-8") as file:
                verdicts = json.load(file)["verdicts"]
            self.assertEqual(sorted(verdict["case"] for verdict in verdicts), sorted(CASES.split(",")))
            for said in (verdict["sentence"] for verdict in verdicts):
                self.assertIn(said, lines)
                self.assertTrue(said.startswith("FAIL" if code else "PASS"), said)
            checked = start([PROGRAM, "check", report])
            self.assertEqual(checked.returncode, code, checked.stderr)
            self.assertIn("the folder is consistent: 2 runs, 0 problems", checked.stdout)
            self.assertEqual(self.check(report), (code, lines))

    def test_what_goes_wrong_in_one_case(self):
        """Of a sample every second fault. The report says the same to `check`, which is asked of every third fault or of each."""
        for number, (fault, expected) in sample(list(enumerate((
            ("raise", f"ERROR exact-mlp-mean x 1f1b (2 ranks, own): ValueError: two lines{line_of('two')}"),
            ("put", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): ValueError: kind of result 'los': expected one of "
             f"{', '.join(KINDS)}{line_of('los')}"),
            ("numpy", f"ERROR exact-mlp-mean x 1f1b (2 ranks, own): LinAlgError: Singular matrix{line_of('linalg')}"),
            ("kill", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): killed by signal 9 (Killed)"),
            ("exit", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): out of paper"),
            ("leave", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): ended with exit code 0"),
            ("wait", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): TimeoutError: no message of rank 1"),
            ("none", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): TypeError: run() returned NoneType; expected "
             f"plumbline_case.Results, or a list of 2, each rank's{line_of('def run(self, case, prepared):')}"),
            ("text", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): FormatError: 0/loss/-/0/loss: expected an array of "),
            ("hang", "TIMEOUT exact-mlp-mean x 1f1b (2 ranks, own): the case did not end within 10 s (--timeout)"),
            ("nothing", "FAIL exact-mlp-mean x 1f1b (2 ranks, own): step 0, stage 0, micro-batch 0: forward "),
        ))), 2):  # fmt: skip
            more = ["--timeout", "10"] if fault in ("hang", "wait") else []
            with self.subTest(fault):
                code, lines, errors, report = self.run_cases(f"{self.probes}:Faulty", "--case", CASES, *more, FAULT=fault)
                self.assertEqual(code, 1, errors)
                self.assertTrue(lines[0].startswith(expected), lines)
                self.assertTrue(lines[1].startswith("PASS exact-mlp-sum x 1f1b"), lines)
                if IN_FULL or number % 3 == 0:
                    self.assertEqual(self.check(report), (1, lines))
                    self.assertIn("+ pass 1", start([PROGRAM, "check", report]).stdout)

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
        own = "run() returned list of 2; expected plumbline_case.Results, "
        own += "since there are 2 processes: each returns those of its own rank"
        for fault, said in (
            ("list", f"rank 0: TypeError: {own}{line_of('def run(self, case, prepared):  # Split')}"),
            ("leave", f"rank 1 ended with exit code 7; rank 0: BrokenPipeError: a broken pipe{line_of('a broken pipe')}"),
        ):
            _, lines, _, _ = self.run_cases(split, "--case", "exact-mlp-mean", "--ranks", "2", FAULT=fault)
            self.assertEqual([re.sub("rank 1: TypeError", "rank 0: TypeError", line) for line in lines],
                             [f"ERROR exact-mlp-mean x 1f1b (2 ranks, own): {said}"])  # fmt: skip

    def test_the_command_that_repeats_a_failure(self):
        """It is pasted into a shell, however the program was started."""
        words = ["run", "--backend", f"{self.probes}:Split", "--corpus", self.corpus, "--case", CASES, "--ranks", "2", "--timeout", "77"]
        script = f"#!{sys.executable}\nimport sys\nfrom plumbline_case.cli import main\nsys.exit(main())\n"
        os.makedirs(os.path.join(self.folder, "my venv"))
        os.chmod(self.written("my venv/plumbline-case", script), 0o755)
        path = {"PATH": f"{self.folder}/my venv{os.pathsep}{os.environ['PATH']}"}
        ways = [
            ("'my venv/plumbline-case'", "plumbline-case", path),
            (TYPED, TYPED, {}),
            ("'my venv/plumbline-case'", "'my venv/plumbline-case'", {}),
            ("plumbline-case", "plumbline-case", path),
        ]
        for typed, pasted, environment in sample(ways, 2):
            with self.subTest(typed, **environment):
                environment |= {"FAULT": "rank"}
                done = paste(f"{typed} {shlex.join(words)}", self.folder, **environment)
                said, line, *_ = done.stdout.splitlines()
                self.assertTrue(line.startswith(f"  repeat: {pasted} run "), done.stdout + done.stderr)
                again = paste(line.removeprefix("  repeat: "), self.folder, **environment)
                self.assertEqual(again.stdout.splitlines(), [said, line, "1 error"])
                self.assertTrue(said.endswith(f"rank 1: ValueError: no more{line_of('no more')}"), "no log is kept")

    def test_a_log_without_a_word_is_not_named(self):
        silent = self.written("silent.py", "import os\nfrom plumbline_case.examples.toy import Toy\n\n"
                              "class Silent(Toy):\n    def run(self, case, prepared): os._exit(3)\n")  # fmt: skip
        report = os.path.join(self.folder, "silent")
        words = ["run", "--backend", silent, "--corpus", self.corpus, "--case", "exact-mlp-sum", "--report", report]
        said = "ERROR exact-mlp-sum x 1f1b (2 ranks, own): ended with exit code 3"
        self.assertEqual(start([*TOOL, *words]).stdout.splitlines()[0], said)
        self.assertEqual(start([*TOOL, "check", report, "--corpus", self.corpus]).stdout.splitlines()[0], said)

    def test_what_is_recorded_names_the_backend_and_its_device(self):
        _, _, _, report = self.run_cases(f"{self.probes}:OnGpu", "--case", "exact-mlp-sum")
        with open(os.path.join(report, "results.jsonl"), encoding="utf-8") as file:
            (line,) = map(json.loads, file)
        self.assertEqual([line[name] for name in ("status", "backend", "device")], ["error", "toy in NumPy", "cuda"])

    def test_a_launcher_that_starts_one_process_is_refused(self):
        words = ["run", "--backend", f"{TOY}:Toy", "--corpus", self.corpus, "--ranks", "2", "--launcher", "env A=1"]
        done = start([*TOOL, *words])
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        self.assertIn("env does not start 2 ranks of `echo rank`: exited with code 0, they printed 1 lines; try: env", done.stderr)

    def test_the_ranks_of_launchers(self):
        torchrun, pod = {"RANK": "1", "WORLD_SIZE": "2"}, {"RANK": "0", "WORLD_SIZE": "1"}
        for given, ranks, found in (
            ({}, 2, None),
            (torchrun | {"PMI_RANK": "0", "PMI_SIZE": "1"}, 2, (1, 2)),
            ({"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"}, 4, (3, 4)),
            ({"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4", "SLURM_NTASKS": "4"}, 4, (2, 4)),
            ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, 4, None),  # a batch script itself is no rank
            (pod, 2, None),
            (pod, 1, (0, 1)),
            (torchrun, 4, None),
            (pod | {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, 2, (1, 2)),  # mpirun in a pod
        ):
            with unittest.mock.patch.dict(os.environ, given, clear=True):
                self.assertEqual(launched(ranks), found, given)

    def test_the_environment_of_another_launcher_does_not_count(self):
        pod = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}  # of as many ranks as the cases have
        for left in ({"RANK": "0", "WORLD_SIZE": "1"}, {"SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "3"}, pod):
            code, lines, errors, _ = self.faulty("AllRanks", **left)
            self.assertEqual((code, [line.split()[0] for line in lines]), (0, ["PASS", "PASS"]), errors)

    def test_the_results_of_each_rank_from_one_process(self):
        code, lines, errors, report = self.faulty("AllRanks")
        self.assertEqual((code, len(lines)), (0, 2), (lines, errors))
        files = os.path.join(report, "results", "own-2", "1f1b", "exact-mlp-sum")
        self.assertEqual(sorted(os.listdir(files)), ["rank0.safetensors", "rank1.safetensors"])
        for fault, words in ("copy", "rank 0 and rank 1 disagree on 0/grad/"), ("few", "TypeError: run() returned list of 1; exp"):
            code, lines, _, _ = self.faulty("AllRanks", FAULT=fault)
            self.assertEqual(code, 1)
            self.assertIn(words, lines[0])
            self.assertTrue(lines[1].startswith("PASS exact-mlp-sum"), lines)

    def test_unsupported_and_unjudged_cases_are_counted_and_do_not_pass(self):
        code, lines, _, _ = self.faulty("Declines")
        why = "operators beyond those supported: aten::abs, aten::linear"
        cases = ("exact-mlp-mean", "exact-mlp-sum")
        self.assertEqual((code, lines), (3, [f"UNSUPPORTED {case} x 1f1b (2 ranks, own): {why}" for case in cases]))
        code, lines, _, _ = self.run_cases(f"{self.probes}:Faulty", "--case", "mlp")
        self.assertEqual(code, 3)

    def test_a_case_without_expected_results_is_not_judged(self):
        export(corpus := os.path.join(self.folder, "bare"), "exact-mlp-sum", more=("--ranks", "2"))
        code, lines, _, report = self.run_cases(f"{TOY}:Toy", "--corpus", corpus)
        said = "NOT JUDGED exact-mlp-sum x 1f1b (2 ranks, own): the case was exported without --expected"
        self.assertEqual((code, lines), (3, [said]))
        self.assertEqual(start([*TOOL, "check", "-v", report, "--corpus", corpus]).stdout.splitlines()[0], said)

    def test_a_case_without_a_value_to_compare_is_skipped(self):
        """As plumbline says it."""
        code, lines, _, report = self.faulty("Few")
        why = "nothing to compare: the case has no values of the kinds that the backend delivers"
        self.assertEqual((code, lines), (3, [f"SKIPPED {case} x 1f1b (2 ranks, own): {why}" for case in sorted(CASES.split(","))]))
        self.assertEqual(self.check(report), (3, lines))
        theirs, command = os.path.join(self.folder, "theirs-few"), shlex.join([*TOOL, "backend", f"{self.probes}:Few"])
        words = ["--backend", command, "--case", CASES, "--schedule", "1f1b", "--ranks", "2", "--report", theirs]
        self.assertEqual(start([PROGRAM, "run", *words]).returncode, 3)
        with open(os.path.join(theirs, "report.json"), encoding="utf-8") as file:
            self.assertEqual(sorted(verdict["sentence"] for verdict in json.load(file)["verdicts"]), lines)
        code, found = self.check(theirs)
        self.assertEqual((code, sorted(found)), (3, lines))
        tests = self.as_tests("Few")
        self.assertEqual(tests.returncode, 5, tests.stdout)
        self.assertIn("2 skipped", tests.stdout)
        self.assertIn(why, tests.stdout)

    def test_a_recorded_skip_is_held_against_its_files(self):
        _, lines, _, report = self.run_cases(f"{TOY}:WrongScale", "--case", CASES)
        verdicts = [{"case": case, "schedule": "1f1b", "ranks": 2, "transport": "own", "status": "skipped", "sentence": "SKIPPED",
                     "waiver": "", "first": None, "tensors": 0} for case in CASES.split(",")]  # fmt: skip
        with open(os.path.join(report, "report.json"), "w", encoding="utf-8") as file:
            json.dump({"verdicts": verdicts}, file)
        done = start([*TOOL, "check", "-v", report, "--corpus", self.corpus])
        self.assertEqual((done.returncode, done.stdout.splitlines()[:-1]), (2, lines), done.stderr)
        self.assertEqual(done.stderr.count('the run recorded "SKIPPED exact-mlp-'), 2, done.stderr)

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

    def as_tests(self, name, *more, **environment):
        """The plugin is not installed here: -p loads what the entry point loads."""
        os.makedirs(self.folder + "/empty", exist_ok=True)
        plugin = [sys.executable, "-m", "pytest", "-p", "plumbline_case.pytest_plugin", "-rs", "-q", self.folder + "/empty"]
        options = ["--plumbline-corpus", self.corpus, "--plumbline-cases", CASES] if name else []
        spec = ["--plumbline-backend", name if ":" in name else f"{self.probes}:{name}"] if name else []
        return start([*plugin, *options, *spec, *more], **environment)

    def test_cases_as_tests(self):
        right = self.as_tests(f"{TOY}:Toy")
        self.assertEqual(right.returncode, 0, right.stdout)
        self.assertIn("2 passed", right.stdout)
        wrong = self.as_tests(f"{TOY}:WrongScale")
        self.assertEqual(wrong.returncode, 1, wrong.stdout)
        self.assertIn("FAIL exact-mlp-sum x 1f1b (2 ranks, own): step 0: gradient `", wrong.stdout)
        self.assertIn(f"  repeat: {TYPED} run --backend {TOY}:WrongScale --case exact-mlp-sum --schedule 1f1b", wrong.stdout)
        (line,) = (line for line in wrong.stdout.splitlines() if "  repeat: " in line and "exact-mlp-sum" in line)
        again = paste(line.strip().removeprefix("repeat: "))
        self.assertEqual((again.returncode, again.stdout.splitlines()[-1]), (1, "1 fail"), again.stderr)
        self.assertIn("2 passed", self.as_tests("StartsFirst").stdout)
        self.assertIn("no tests ran", self.as_tests("").stdout)

    def test_cases_as_tests_that_end_the_process(self):
        """In processes of their own: neither the session nor the other case ends with one."""
        for fault, said in (
            ("leave", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): ended with exit code 0"),
            ("kill", "ERROR exact-mlp-mean x 1f1b (2 ranks, own): killed by signal 9"),
            ("hang", "TIMEOUT exact-mlp-mean x 1f1b (2 ranks, own): the case did not end within 5 s (--plumbline-timeout)"),
        ):
            done = self.as_tests("Faulty", "--plumbline-timeout", "5", FAULT=fault)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(said, done.stdout)
            self.assertIn("1 failed, 1 passed", done.stdout)

    def test_cases_as_tests_that_are_all_skipped_are_not_green(self):
        declined = self.as_tests("Declines")
        self.assertEqual(declined.returncode, 5, declined.stdout)
        self.assertIn("operators beyond those supported: aten::abs, aten::linear", declined.stdout)
        self.assertIn("2 skipped", declined.stdout)
        self.assertIn("plumbline: no case was judged, so the backend has not passed", declined.stdout)
        listed = self.as_tests("Declines", "--collect-only")
        self.assertEqual(listed.returncode, 0, listed.stdout)
        self.assertNotIn("no case was judged", listed.stdout)

    def test_a_class_that_cannot_be_made_ends_pytest_in_a_line(self):
        done = self.as_tests("Needy")
        self.assertEqual(done.returncode, 4, done.stdout)
        self.assertNotIn("INTERNALERROR", done.stdout + done.stderr)
        self.assertIn("ERROR: describe: exited with code 1: TypeError: Needy.__init__() missing 1 required", done.stderr)


if __name__ == "__main__":
    unittest.main()
