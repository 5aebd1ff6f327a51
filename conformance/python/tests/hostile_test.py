"""Backends that do what no backend should, under plumbline-case: nothing hangs, nothing is lost, nothing is believed.

PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p hostile_test.py
"""

import os
import shutil
import subprocess
import unittest

from wheel_support import TOOL, TOY, InFolder, export, start

CASES = "exact-mlp-mean,exact-mlp-sum"
BACKEND = '''
import os, subprocess
from plumbline_case.examples.toy import Toy

class Replaces(Toy):
    """What a variable says is done to the results of one case before it is announced."""
    def barrier(self, files):
        super().barrier(files)
        if "exact-mlp-mean" in files[0]:
            subprocess.run(["sh", "-ec", "f=$1; " + os.environ["DOES"], "sh", files[0]], check=True)
'''
# What is put into the place of the result $f, and what is said of it behind its name.
FILE, FOLDER = "rank 0: it is ", "1f1b/exact-mlp-mean: it is "
REPLACEMENTS = (
    ("rm $f; mkfifo $f", f"{FILE}a FIFO; expected a regular file"),
    ("rm $f; mkdir $f", f"{FILE}a folder; expected a regular file"),
    ("rm $f; ln -s /dev/zero $f", f"{FILE}a symbolic link; expected a regular file"),
    ("rm $f; ln -s rank0.safetensors $f", f"{FILE}a symbolic link; expected a regular file"),
    ("mv $f $f.moved; ln -s $f.moved $f", f"{FILE}a symbolic link; expected a regular file"),
    ("d=$(dirname $f); mv $d $d.moved; ln -s $d.moved $d", f"{FOLDER}a symbolic link; expected a folder"),
    ("truncate -s 40G $f", "rank 0: 42949672960 bytes; expected at most 268435456"),
)


class Hostile(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.corpus = os.path.join(cls.folder, "corpus")
        export(cls.corpus, *CASES.split(","))
        cls.backend = cls.written("replaces.py", BACKEND) + ":Replaces"

    def tool(self, verb, *words, **environment):
        return start([*TOOL, verb, *words, "--corpus", self.corpus], **environment)

    def report(self):
        folder = os.path.join(self.folder, "report")
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def test_what_stands_in_the_place_of_a_result_costs_its_case_alone(self):
        for does, said in REPLACEMENTS:
            with self.subTest(does):
                words = ["--backend", self.backend, "--case", CASES, "--report", self.report()]
                lines = self.tool("run", "-v", *words, DOES=does).stdout.splitlines()
                self.assertTrue(lines.pop(1).startswith("  repeat: "))
                log = os.path.join(words[-1], "backend.log")
                self.assertEqual(lines[0].removesuffix(f" (see {log})"), f"ERROR exact-mlp-mean x 1f1b (2 ranks, own): {said}")
                self.assertTrue(lines[1].startswith("PASS exact-mlp-sum x 1f1b"), lines)

    def test_nor_is_it_judged_later(self):
        for does, said in REPLACEMENTS:
            with self.subTest(does):
                report = self.report()
                good = self.tool("run", "--backend", f"{TOY}:Toy", "--case", CASES, "--report", report)
                self.assertEqual(good.returncode, 0, good.stderr)
                file = os.path.join(report, "results/own-2/1f1b/exact-mlp-mean/rank0.safetensors")
                subprocess.run(["sh", "-ec", "f=$1; " + does, "sh", file], check=True)
                checked = self.tool("check", "-v", report)
                self.assertNotEqual(checked.returncode, 0, checked.stdout)
                self.assertIn(said.removeprefix("rank 0: "), checked.stdout + checked.stderr)
                self.assertIn("PASS exact-mlp-sum x 1f1b", checked.stdout)

    def test_doctor_names_it(self):
        for does, said in REPLACEMENTS:
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


if __name__ == "__main__":
    unittest.main()
