"""Backends that do what no backend should, under plumbline-case: nothing hangs, nothing is lost, nothing is believed.

PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p hostile_test.py
"""

import json
import os
import shutil
import subprocess
import sys
import time
import unittest
from unittest import mock

from wheel_support import PROGRAM, ROOT, TOOL, TOY, InFolder, export, sample, start

from plumbline_case import FormatError
from plumbline_case.judge import judge, rank_of
from plumbline_case.report_folder import Checker, rank_files

CASES = "exact-mlp-mean,exact-mlp-sum"
BACKEND = '''
import atexit, glob, json, os, subprocess, threading, time
from plumbline_case import load, read_tensors, write_tensors
from plumbline_case.examples.toy import Toy, WrongScale

class Replaces(Toy):
    """What a variable says is done to the results of one case before it is announced."""
    def barrier(self, files):
        super().barrier(files)
        if "exact-mlp-mean" in files[0]:
            subprocess.run(["sh", "-ec", "f=$1; " + os.environ["DOES"], "sh", files[0]], check=True)

class ReplacesLater(Toy):
    """The same, while the next case runs."""
    def barrier(self, files):
        super().barrier(files)
        if "exact-mlp-sum" in files[0]:
            time.sleep(2)
            file = files[0].replace("exact-mlp-sum", "exact-mlp-mean")
            subprocess.run(["sh", "-ec", "f=$1; " + os.environ["DOES"], "sh", file], check=True)

class ReplacesOfOtherRanks(Toy):
    """The same, of the case on 2 ranks, while one on 4 runs."""
    def barrier(self, files):
        super().barrier(files)
        if "own-4" in files[0]:
            subprocess.run(["sh", "-ec", "f=$1; " + os.environ["DOES"], "sh", files[0].replace("own-4", "own-2")], check=True)

class Ends(Toy):
    """What a variable says is done when its last case is done; its start after a failure has one case."""
    def run_job(self, job, folder, out, tell):
        count, does = len(job["cases"]), os.environ["DOES"]
        if count == 1 and "again" in does: os._exit(4)
        def heard(number, what, why=""):
            tell(number, what, why)
            if count == 2 and (number, what) == (0, "done") and "between" in does: os._exit(3)
            if (number, what) == (0, "done") and "twice" in does: tell(0, "done")
        super().run_job(job, folder, out, heard)
        exec(does)

class Talks(Toy):
    """Says more than anybody reads."""
    def why_not(self, case): return "no " * 300000 + "end" if case.id == os.environ["DOES"] else None
    def run(self, case, prepared):
        results = super().run(case, prepared)
        if case.id == "exact-mlp-mean": raise ValueError("x" * 65000)
        results["0/grad/-/-/" + "n" * 5000000] = results["0/loss/-/0/loss"]
        return results

class Rewrites(WrongScale):
    """Before anything is asked of it, its wrong results become the expected ones, or every case one that is not judged."""
    def describe(self):
        for folder in glob.glob(os.environ["CORPUS"] + "/*/*/"):
            getattr(self, os.environ["DOES"])(folder)
        return super().describe()

    def results(self, folder):
        case, expected = load(folder), folder + "expected.safetensors"
        write_tensors(expected, read_tensors(expected) | self.run(case, self.prepare(case)))

    def truth(self, folder):
        document = json.load(open(folder + "case.json"))
        json.dump(document | {"truth": "bounded"}, open(folder + "case.json", "w"))
'''
# What is put into the place of the result $f, and what is said of it behind its name.
FILE, FOLDER = "rank 0: it is ", "1f1b/exact-mlp-mean: it is "
OTHER, NO_RANK = "1f1b/exact-mlp-mean/", "no such rank; the job has 2 ranks: 0 to 1"
BAD_FILES = os.path.join(ROOT, "scripts", "fuzz", "corpus", "safetensors")
REPLACEMENTS = (
    ("rm $f; mkfifo $f", f"{FILE}a FIFO; expected a regular file"),
    ("rm $f; mkdir $f", f"{FILE}a folder; expected a regular file"),
    ("rm $f; ln -s /dev/zero $f", f"{FILE}a symbolic link; expected a regular file"),
    ("rm $f; ln -s rank0.safetensors $f", f"{FILE}a symbolic link; expected a regular file"),
    ("mv $f $f.moved; ln -s $f.moved $f", f"{FILE}a symbolic link; expected a regular file"),
    ("d=$(dirname $f); mv $d $d.moved; ln -s $d.moved $d", f"{FOLDER}a symbolic link; expected a folder"),
    ("truncate -s 40G $f", "rank 0: 42949672960 bytes; expected at most 268435456"),
    ("cp $f $(dirname $f)/rank-1.safetensors", f"{OTHER}rank-1.safetensors: {NO_RANK}"),
    ("mv $f $(dirname $f)/rank00.safetensors", f"{OTHER}rank00.safetensors: {NO_RANK}"),
    ("cp $f $(dirname $f)/rank99999999999999999999999.safetensors", f"{OTHER}rank99999999999999999999999.safetensors: {NO_RANK}"),
    (r"cp $f $(dirname $f)/$(printf 'rank\377').safetensors", rf"{OTHER}rank\xff.safetensors: {NO_RANK}"),
    (f"cp {BAD_FILES}/many_dimensions $f", "rank 0: 0/loss/-/0/loss: 70 dimensions in its shape; expected at most 32"),
    (f"cp {BAD_FILES}/empty_and_large $f", "rank 0: 0/loss/-/0/loss: its shape requires more than 2^63 bytes"),
    (f"cp {BAD_FILES}/large_and_empty $f", "rank 0: 0/loss/-/0/loss: its shape requires more than 2^63 bytes"),
    (f"cp {BAD_FILES}/half_a_surrogate $f", "rank 0: the header: not JSON ('utf-8' codec can't encode character '\\ud800' in position 13: surrogates not allowed)"),
)


# What is done behind the last case, and what is told of it.
TWICE = "(only one process may print events: do two act as rank 0?)"
ENDS = (
    ("os.kill(os.getpid(), 9)", "failed between two cases: killed by signal 9 (Killed)"),
    ("os._exit(3)", "failed between two cases: ended with exit code 3"),
    ("raise ValueError('no paper')", "failed between two cases: ValueError: no paper"),
    ("tell(77, 'begins')", "failed between two cases: an event that does not follow: @plumbline case 77 begins"),
    ("tell(2, 'begins')", "failed between two cases: an event that does not follow: @plumbline case 2 begins"),
    ("tell('one', 'is fine')", "failed between two cases: an event that does not follow: @plumbline case one is fine"),
    ("tell('1' * 5000, 'begins')", f"failed between two cases: an event that does not follow: @plumbline case {'1' * 64}"),
    ("tell(1, 'done')", f"failed: an event that does not follow: @plumbline case 1 done {TWICE}"),
    ("threading.Thread(target=time.sleep, args=[1000]).start()", "failed between two cases: no other case begun and no end within 5 s (--timeout)"),
    ("atexit.register(time.sleep, 1000)", "failed between two cases: no other case begun and no end within 5 s (--timeout)"),
)


class Hostile(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.corpus = os.path.join(cls.folder, "corpus")
        export(cls.corpus, *CASES.split(","))
        cls.file = cls.written("replaces.py", BACKEND)
        cls.backend = cls.file + ":Replaces"

    def tool(self, verb, *words, corpus=None, **environment):
        return start([*TOOL, verb, *words, "--corpus", corpus or self.corpus], **environment)

    def report(self):
        folder = os.path.join(self.folder, "report")
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def test_what_stands_in_the_place_of_a_result_costs_its_case_alone(self):
        """Every third of them, or each one: `check` reads the results by the same code, and is asked about all."""
        for does, said in sample(REPLACEMENTS, 3, first=1):
            with self.subTest(does):
                words = ["--backend", self.backend, "--case", CASES, "--report", self.report()]
                lines = self.tool("run", "-v", *words, DOES=does).stdout.splitlines()
                self.assertTrue(lines.pop(1).startswith("  repeat: "))
                log = os.path.join(words[-1], "backend.log")
                self.assertEqual(lines[0].removesuffix(f" (see {log})"), f"ERROR exact-mlp-mean x 1f1b (2 ranks, own): {said}")
                self.assertTrue(lines[1].startswith("PASS exact-mlp-sum x 1f1b"), lines)

    def test_nor_is_it_judged_later(self):
        good = os.path.join(self.folder, "good")
        run = self.tool("run", "--backend", f"{TOY}:Toy", "--case", CASES, "--report", good)
        self.assertEqual(run.returncode, 0, run.stderr)
        for does, said in REPLACEMENTS:
            with self.subTest(does):
                report = shutil.copytree(good, self.report())
                file = os.path.join(report, "results/own-2/1f1b/exact-mlp-mean/rank0.safetensors")
                subprocess.run(["sh", "-ec", "f=$1; " + does, "sh", file], check=True)
                checked = self.tool("check", "-v", report)
                self.assertNotEqual(checked.returncode, 0, checked.stdout)
                self.assertIn(said.removeprefix("rank 0: "), checked.stdout + checked.stderr)
                self.assertIn("PASS exact-mlp-sum x 1f1b", checked.stdout)

    def test_results_that_change_after_their_verdict_lose_it(self):
        of_rank = "after its case was done; results must not change once they are announced"
        for does, said in sample([
            ("printf x >> $f", f"rank 0: changed {of_rank}"),
            ("printf x | dd of=$f bs=1 seek=20 conv=notrunc status=none", f"rank 0: changed {of_rank}"),
            ("rm $f", f"rank 0: removed {of_rank}"),
            ("cp $f $(dirname $f)/rank1.safetensors", f"rank 1: added {of_rank}"),
            ("d=$(dirname $f); mv $d $d.moved; ln -s $d.moved $d", f"{FOLDER}a symbolic link; expected a folder"),
            ("cp $f $f.new; mv $f.new $f", ""),
        ], 2):  # fmt: skip
            with self.subTest(does):
                report = self.report()
                run = self.tool("run", "-v", "--backend", f"{self.file}:ReplacesLater", "--case", CASES, "--report", report, DOES=does)
                found = [line.split(" (")[0] for line in run.stdout.splitlines() if " x " in line]
                passes = ["PASS exact-mlp-mean x 1f1b", "PASS exact-mlp-sum x 1f1b"]
                error = f"ERROR exact-mlp-mean x 1f1b (2 ranks, own): {said}\n"
                self.assertEqual(found, passes + ["ERROR exact-mlp-mean x 1f1b"] * bool(said), run.stdout + run.stderr)
                self.assertEqual(run.stdout.splitlines()[-1], "1 error, 1 pass" if said else "2 pass")
                checked = self.tool("check", report)
                if said:
                    self.assertIn(error, run.stdout)
                    self.assertIn(error, checked.stdout)
                self.assertEqual((run.returncode, checked.returncode), (1, 1) if said else (0, 0), checked.stderr)

    def test_so_do_those_that_change_on_a_later_number_of_ranks(self):
        corpus, report, name = os.path.join(self.folder, "two-numbers"), self.report(), "exact-mlp-mean x 1f1b"
        for ranks in "2", "4":
            export(corpus, "exact-mlp-mean", more=("--ranks", ranks, "--expected"))
        words = ["--backend", f"{self.file}:ReplacesOfOtherRanks", "--report", report]
        run = self.tool("run", "-v", *words, corpus=corpus, DOES="printf x >> $f")
        found = [line.partition("): ")[0] + ")" for line in run.stdout.splitlines() if " x " in line]
        of_2, of_4 = f"{name} (2 ranks, own)", f"{name} (4 ranks, own)"
        self.assertEqual(found, [f"PASS {of_2}", f"PASS {of_4}", f"ERROR {of_2}"], run.stdout + run.stderr)
        said = f"ERROR {of_2}: rank 0: changed after its case was done; results must not change once they are announced\n"
        checked = self.tool("check", report, corpus=corpus)
        for done in run, checked:
            self.assertIn(said, done.stdout)
            self.assertEqual((done.returncode, done.stdout.splitlines()[-1]), (1, "1 error, 1 pass"), done.stderr)
        plugin = [sys.executable, "-m", "pytest", "-p", "plumbline_case.pytest_plugin", "-q", self.folder]
        tests = start([*plugin, f"--plumbline-backend={words[1]}", f"--plumbline-corpus={corpus}"], DOES="printf x >> $f")
        self.assertIn("1 failed, 1 passed", tests.stdout)
        self.assertIn(said.rstrip(), tests.stdout)

    def ended(self, does):
        """(exit code, lines) of a run with that end, after which `check` says the same of its folder."""
        report = self.report()
        words = ["--backend", f"{self.file}:Ends", "--case", CASES, "--timeout", "5", "--report", report]
        run = self.tool("run", "-v", *words, DOES=does)
        log = f" (see {os.path.join(report, 'backend.log')})"
        checked = self.tool("check", "-v", report)
        self.assertEqual((checked.returncode, checked.stderr), (run.returncode, ""), does)
        self.assertEqual(sorted(checked.stdout.splitlines()), sorted(run.stdout.splitlines()))
        theirs = start([PROGRAM, "check", report])
        self.assertIn("the folder is consistent: 2 runs, 0 problems", theirs.stdout, theirs.stderr)
        lines = [line.split(" (2 ranks, own)")[0].removesuffix(log) for line in run.stdout.splitlines()]
        if run.returncode:
            with open(os.path.join(report, "report.json"), encoding="utf-8") as file:
                broken = [f"BROKEN {why}".removesuffix(log) for why in json.load(file)["broken"]]
            self.assertEqual(broken, [line for line in lines if line.startswith("BROKEN ")])
        return run.returncode, lines

    def test_how_a_backend_ends_behind_its_last_case_is_told_once(self):
        """Its verdicts stay."""
        passes = ["PASS exact-mlp-mean x 1f1b", "PASS exact-mlp-sum x 1f1b"]
        for does, said in ENDS:
            with self.subTest(does):
                begin = time.monotonic()
                code, lines = self.ended(does)
                self.assertEqual((code, lines), (1, [*passes, f"BROKEN toy in NumPy on 2 ranks {said}", "2 pass"]))
                self.assertLess(time.monotonic() - begin, 60)
        self.assertEqual(self.ended("pass"), (0, [*passes, "2 pass"]))

    def test_so_is_an_end_between_two_cases(self):
        """Where it does not start again, what is left is not run."""
        first, second = "PASS exact-mlp-mean x 1f1b", "PASS exact-mlp-sum x 1f1b"
        broken = "BROKEN toy in NumPy on 2 ranks failed between two cases: ended with exit code 3"
        self.assertEqual(self.ended("'between'"), (1, [first, broken, second, "2 pass"]))
        again = "BROKEN toy in NumPy on 2 ranks did not start again: ended with exit code 4"
        not_run = "NOT RUN exact-mlp-sum x 1f1b"
        self.assertEqual(self.ended("'between, again'"), (1, [first, broken, again, not_run, "1 not run, 1 pass"]))

    def test_a_case_after_a_repeated_event_is_not_run(self):
        broken = f"BROKEN toy in NumPy on 2 ranks failed: an event that does not follow: @plumbline case 0 done {TWICE}"
        lines = ["PASS exact-mlp-mean x 1f1b", broken, "NOT RUN exact-mlp-sum x 1f1b", "1 not run, 1 pass"]
        self.assertEqual(self.ended("'twice'"), (1, lines))

    def test_pytest_and_the_doctor_tell_the_end_too(self):
        plugin = [sys.executable, "-m", "pytest", "-p", "plumbline_case.pytest_plugin", "-q", self.folder]
        words = [f"--plumbline-backend={self.file}:Ends", f"--plumbline-corpus={self.corpus}"]
        done = start([*plugin, *words], DOES="os._exit(3)")
        self.assertIn("1 failed, 1 passed", done.stdout)
        self.assertIn("BROKEN toy in NumPy on 2 ranks failed between two cases: ended with exit code 3", done.stdout)
        done = start([*plugin, *words], DOES="'between, again'")
        self.assertIn("1 failed, 1 passed", done.stdout)
        self.assertIn("NOT RUN exact-mlp-sum x 1f1b (2 ranks, own): the run ended before it", done.stdout)
        done = self.tool("doctor", "--backend", f"{self.file}:Ends", DOES="os._exit(3)")
        self.assertIn("failed     run: ended with exit code 3; all that it wrote is in DIR/backend.log after: ", done.stdout)

    def test_a_line_has_an_end_whatever_is_said(self):
        for declined in "none", "exact-mlp-sum":
            report = self.report()
            words = ["--backend", f"{self.file}:Talks", "--case", CASES, "--report", report]
            for verbose in [], ["-v"]:
                shutil.rmtree(report, ignore_errors=True)
                run = self.tool("run", *verbose, *words, DOES=declined)
                checked = self.tool("check", *verbose, report)
                for done in run, checked:
                    self.assertEqual((done.returncode, done.stderr), (1, ""))
                    self.assertLess(max(map(len, done.stdout.splitlines())), 1400)
                    self.assertEqual(done.stdout.count(" characters left out) ..."), 2, done.stdout)
                self.assertIn("end\n" if declined == "exact-mlp-sum" else "nnn` f32[] was not expected", run.stdout)

    def test_the_last_test_tells_it_to_pytest(self):
        plugin = [sys.executable, "-m", "pytest", "-p", "plumbline_case.pytest_plugin", "-q", self.folder]
        words = [f"--plumbline-backend={self.file}:ReplacesLater", f"--plumbline-corpus={self.corpus}"]
        done = start([*plugin, *words], DOES="rm $f")
        self.assertIn("1 failed, 1 passed", done.stdout)
        self.assertIn("ERROR exact-mlp-mean x 1f1b (2 ranks, own): rank 0: removed after its case was done", done.stdout)
        self.assertIn("2 passed", start([*plugin, *words], DOES="true").stdout)

    def test_expected_results_that_a_backend_rewrites_are_not_believed(self):
        for does in "results", "truth":
            with self.subTest(does):
                corpus = os.path.join(self.folder, "rewritten")
                words = ["--backend", f"{self.file}:Rewrites"]
                for verb, said in ("run", "FAIL exact-mlp-mean"), ("doctor", "failed     first comparison: FAIL exact-mlp-sum"):
                    shutil.rmtree(corpus, ignore_errors=True)
                    shutil.copytree(self.corpus, corpus)
                    done = self.tool(verb, *words, corpus=corpus, DOES=does, CORPUS=corpus)
                    self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
                    self.assertIn(said, done.stdout)
                    self.assertNotIn("PASS", done.stdout)

    def test_doctor_names_it(self):
        """Every third of them, or each one: `run` reads the results by the same code."""
        for does, said in sample(REPLACEMENTS, 3):
            with self.subTest(does):
                replaced = does.replace("exact-mlp-mean", "exact-mlp-sum")
                words = ["doctor", "--backend", self.backend.replace("exact-mlp-mean", "exact-mlp-sum")]
                with open(self.backend.partition(":")[0], encoding="utf-8") as file:
                    words[2] = self.written("of_doctor.py", file.read().replace("exact-mlp-mean", "exact-mlp-sum")) + ":Replaces"
                done = self.tool(*words, DOES=replaced)
                self.assertEqual(done.returncode, 1, done.stdout)
                said = said.replace("exact-mlp-mean", "exact-mlp-sum")
                self.assertIn(f"failed     result files: {said}", done.stdout)

    def test_events_behind_a_label_are_told(self):
        launcher = """sh -c '(RANK=0 WORLD_SIZE=2 "$@" & RANK=1 WORLD_SIZE=2 "$@"; wait) | sed "s/^/[rank0]: /"' sh"""
        words = ["--backend", f"{TOY}:Toy", "--launcher", launcher, "--ranks", "2"]
        said = '"[rank0]: @plumbline case 0 begins" on standard output is no event, since other words precede it'
        run = self.tool("run", *words, "--case", CASES, "--report", self.report())
        self.assertEqual((run.returncode, run.stderr.count(said)), (3, 1), run.stdout + run.stderr)

    def test_two_processes_that_act_as_rank_0_are_told(self):
        launcher = """sh -c '"$@" & "$@"; wait' sh"""
        words = ["--backend", f"{TOY}:Toy", "--launcher", launcher, "--ranks", "2"]
        said = "(only one process may print events: do two act as rank 0?)"
        done = self.tool("run", *words, "--case", "exact-mlp-sum", "--report", self.report())
        self.assertIn(said, done.stdout + done.stderr)

    def test_two_events_on_one_line_are_told(self):
        # As if another process wrote its event before this line's end.
        both = '(RANK=0 WORLD_SIZE=2 "$@" & RANK=1 WORLD_SIZE=2 "$@"; wait)'
        launcher = f"""sh -c '{both} | sed "s/0 done/0 done@plumbline case 0 begins/"' sh"""
        words = ["--backend", f"{TOY}:Toy", "--launcher", launcher, "--ranks", "2"]
        said = (
            "an event that does not follow: @plumbline case 0 done@plumbline case 0 begins "
            "(only one process may print events: do two act as rank 0?)"
        )
        done = self.tool("run", *words, "--case", "exact-mlp-sum", "--report", self.report())
        self.assertIn(said, done.stdout + done.stderr)


class NotRead(unittest.TestCase):
    def test_what_the_system_refuses_to_read_is_a_line_of_its_case(self):
        self.assertEqual(judge(None, ["/proc/self/mem"], name=rank_of), ("ERROR", "cannot read mem: Input/output error"))
        with mock.patch("os.listdir", side_effect=PermissionError(13, "Permission denied")):
            with self.assertRaisesRegex(FormatError, "^cannot read .*: Permission denied$"):
                rank_files(os.path.join(BAD_FILES, "rank"), "own", 2)

    def test_as_is_a_file_for_which_there_is_no_memory(self):
        file = os.path.join(BAD_FILES, "rank")
        with mock.patch("plumbline_case.tensors.array_in", side_effect=MemoryError):
            size = os.path.getsize(file)
            self.assertEqual(judge(None, [file], name=rank_of), ("ERROR", f"rank: no memory for its {size} bytes"))


class Records(InFolder):
    """run.json of a report from another machine."""

    RUN = {"case": "a", "schedule": "gpipe", "csv": "", "ranks": 2, "transport": "own", "unsupported": ""}

    def record(self, **changes):
        record = {"schema": "plumbline-run/1", "describe": None, "seed": "1", "microbatches": 0, "options": {}}
        record["runs"] = [self.RUN | changes]
        self.written("run.json", json.dumps(record))
        return Checker(self.folder, self.folder)

    def test_its_names_lead_nowhere_else(self):
        for member, values in {
            "case": ("", ".", "..", "../a", "/etc", "a/b", "a\0", 7, None),
            "schedule": ("", "..", "a/..", "a/", "a\0", 7),
            "transport": ("..", "a/b", 7),
            "ranks": (0, -1, 4097, 1 << 40, 1.0, "2"),
        }.items():
            for value in values:
                with self.subTest(member, value=value), self.assertRaises(FormatError) as caught:
                    self.record(**{member: value})
                self.assertRegex(str(caught.exception), rf"^{self.folder}/run.json: runs\[0\].{member}: .*$")

    def test_a_schedule_that_is_a_file_has_no_expected_results(self):
        """Not even where its path leads to a case of the report's own."""
        os.makedirs(os.path.join(self.folder, "evil-2"))
        self.written("evil-2/case.json", "{}")
        os.makedirs(os.path.join(self.folder, "results/own-2/evil/a"))
        self.written("results/own-2/evil/a/rank0.safetensors", "")
        checker = self.record(schedule=os.path.join(self.folder, "evil"))
        self.assertEqual(checker.verdict(checker.record["runs"][0]).status, "NOT JUDGED")

    def test_a_waived_verdict_is_held_against_what_its_files_may_have_been(self):
        """A waiver may expect a mistrusted verdict as well as a failed one."""
        run, waiver = "a x gpipe (2 ranks, own)", "w.toml:2: known (https://x, until 2999-01-01)"
        for headline, judged, agrees in (
            ("XFAIL", "FAIL", True),
            ("XFAIL", "MISTRUSTED", True),
            ("XFAIL", "PASS", False),
            ("XPASS", "PASS", True),
            ("XPASS", "MISTRUSTED", False),
            ("MISTRUSTED", "FAIL", False),
        ):
            with self.subTest(headline, judged=judged):
                checker = self.record()
                checker.judge = lambda run, status=judged: (status, "what was found")
                said = {"status": headline.lower(), "waiver": waiver, "first": None, "tensors": 5}
                said["sentence"] = f"{headline} {run}: what was found [{waiver}]"
                checker.recorded = {("a", "gpipe", 2, "own"): said}
                verdict = checker.verdict(checker.record["runs"][0])
                self.assertEqual(checker.problems == [], agrees, checker.problems)
                self.assertEqual(verdict.status, headline if agrees else judged)


if __name__ == "__main__":
    unittest.main()
