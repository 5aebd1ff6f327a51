"""plumbline-case on the command line: what a user may mistype, and what it says.

    PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p cli_test.py
"""

import argparse
import os
import shlex
import sys
import unittest

from wheel_support import TOOL, TOY, TYPED, InFolder, export, start

from plumbline_case import Backend  # after wheel_support, which finds the package
from plumbline_case.case import EXTRAS, GIVENS
from plumbline_case.cli import seconds
from plumbline_case.examples.toy import Toy
from plumbline_case.schema import FormatError

BEGIN = "from plumbline_case.examples.toy import Toy\n"


class CommandLine(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.corpus = os.path.join(cls.folder, "corpus")
        export(cls.corpus, "exact-mlp-sum", "exact-mlp-mean", "exact-tied")
        cls.one = cls.written("one.py", f"{BEGIN}class Mine(Toy): pass\nAlias = Mine\n")
        cls.two = cls.written("two.py", f"{BEGIN}class Mine(Toy): pass\nclass Other(Mine): pass\n")
        cls.none = cls.written("none.py", BEGIN)
        cls.names = cls.written("names.py", BEGIN + NAMES)

    def run_case(self, spec, *more):
        return start([*TOOL, "run", "-v", "--backend", spec, "--corpus", self.corpus, "--case", "exact-mlp-sum", *more])

    def assert_refused(self, done, *parts):
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_a_file_with_one_class_needs_no_name(self):
        done = self.run_case(self.one)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("PASS exact-mlp-sum", done.stdout)
        program = self.written("program.py", f"#!{sys.executable}\n{BEGIN}Toy().main()\n")
        os.chmod(program, 0o755)
        self.assertEqual(start([*TOOL, "run", "--backend", program, "--corpus", self.corpus]).returncode, 0)

    def test_a_class_that_is_not_there(self):
        for spec, *parts in (
            (self.two, f"expected {self.two}:CLASS; of classes it has several: Mine, Other"),
            (self.none, f"expected {self.none}:CLASS; of classes it has none that derives from plumbline_case.Backend"),
            (f"{self.two}:Mime", f"{self.two} has no class Mime that derives", "; it has Mine, Other"),
            ("nowhere.py", "no file nowhere.py"),
            ("no.module:Mine", "no module no.module"),
            ("'open", "No closing quotation", "expected FILE.py:CLASS"),
        ):
            self.assert_refused(self.run_case(spec), *parts)

    def test_what_is_no_program(self):
        self.written("beside.py", BEGIN + "class Mine(Toy): pass\n")
        self.written("backend.toml", "")
        for spec, part in (
            ("backend.toml", "--backend backend.toml: plumbline-case takes no backend.toml, plumbline does; give FILE.py:CLASS"),
            ("beside", "no program 'beside' in PATH, but there is a file beside.py: --backend beside.py"),
            ("nothing", "no program 'nothing' in PATH; install it, or give its whole path; a class is FILE.py:CLASS or"),
        ):
            self.assert_refused(start([*TOOL, "run", "--backend", spec, "--corpus", self.corpus], self.folder), part)
            doctor = start([*TOOL, "doctor", "--backend", spec, "--corpus", self.corpus], self.folder)
            self.assertIn(f"failed     program: {part}", doctor.stdout)

    def test_a_time_out_is_above_0(self):
        done = self.run_case(self.one, "--timeout", "0")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("argument --timeout: expected a number of seconds above 0, got '0'", done.stderr)
        for given in "-1", "nan", "inf", "soon":
            with self.assertRaisesRegex(argparse.ArgumentTypeError, f"seconds above 0, got '{given}'"):
                seconds(given)
        self.assertEqual(seconds("0.5"), 0.5)

    def test_the_verbs_have_help(self):
        for option in "-h", "--help":
            done = start([*TOOL, "backend", option])
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("plan --job J", done.stdout)

    def test_a_misspelt_word_in_a_class(self):
        for attributes, part in (
            ({"steps": ("train", "training")}, "Mine.steps: 'training' is none of the 7 words; nearest: train, "),
            ({"operators": ("linear",)}, "Mine.operators: 'linear' is none of the 37 words; nearest: aten::linear, "),
            ({"losses": "mean"}, "Mine.losses: 'mean' is none of the 4 words; nearest: mse, "),
            ({"dtypes": ["f32"]}, "Mine.dtypes: 'f32' is none of the 4 words; nearest: F32, "),
            ({"extras": ("loss-divisor",)}, "Mine.extras: 'loss-divisor' is none of the 12 words; nearest: loss_divisor, "),
            ({"givens": ("early_exit",)}, "Mine.givens: 'early_exit' is none of the 5 words; nearest: early_exits, "),
            ({"deliver": ("loss",)}, "Mine.deliver: a Backend has no such attribute; nearest: delivers (begin one of your own "),
            ({"operator": None}, "Mine.operator: a Backend has no such attribute; nearest: operators (begin one of your own "),
        ):
            with self.assertRaises(FormatError) as raised:
                type("Mine", (Toy,), attributes)().describe()
            self.assertEqual(str(raised.exception)[: len(part)], part)
        helpers = {"cache": {}, "engine": None, "_operator": 1, "delivery": 2, "operator": lambda self: None}
        type("Mine", (Toy,), helpers)().describe()
        done = self.run_case(f"{self.names}:Deliver")
        said = "plumbline-case: describe: exited with code 2: Deliver.deliver: a Backend has no such attribute; nearest: "
        self.assertEqual((done.returncode, done.stdout, done.stderr[: len(said)]), (3, "", said))

    def test_the_page_of_the_class_has_every_attribute_and_word(self):
        """pydoc shows the docstring, and no comments."""
        names = [name for name, value in vars(Backend).items() if not (name.startswith("_") or callable(value))]
        self.assertGreater(len(names), 20)
        for word in *names, *EXTRAS, *GIVENS:
            self.assertRegex(Backend.__doc__, rf"\b{word}\b")

    def test_schedules_that_no_case_has(self):
        done = self.run_case(f"{self.names}:Capitals", "--schedule", "1f1b")
        said = "no case (--schedule 1f1b) comes under the schedules of toy in NumPy: 1F1B; the corpus has 1f1b"
        self.assertEqual((done.returncode, done.stderr), (2, f"plumbline-case: {said}\n"))

    def test_a_file_that_python_cannot_read_has_its_place(self):
        spec = self.written("cut.py", "\nclass Mine(")
        done = self.run_case(spec)
        said = "plumbline-case: describe: exited with code 1: SyntaxError: '(' was never closed (cut.py:2)\n"
        self.assertEqual((done.returncode, done.stderr), (3, said))

    def test_an_import_that_fails_has_its_place(self):
        spec = self.written("needy.py", "\nimport no_such_module\n") + ":Mine"
        done = self.run_case(spec)
        why = "exited with code 1: ModuleNotFoundError: No module named 'no_such_module' (needy.py:2)"
        self.assertEqual((done.returncode, done.stderr), (3, f"plumbline-case: describe: {why}\n"))

    def test_a_case_that_is_not_there(self):
        listing = f"(`{TYPED} list --corpus {self.corpus}` has all)"
        done = start([*TOOL, "list", "--corpus", self.corpus, "--case", "exact-mpl-sum"])
        nearest = "nearest: exact-mlp-sum, exact-mlp-mean, exact-tied"
        self.assert_refused(done, f"no case matches 'exact-mpl-sum'; {nearest} {listing}")
        done = start([*TOOL, "list", "--corpus", self.corpus, "--case", "*tied,x*tie"])
        self.assert_refused(done, "no case matches 'x*tie'; nearest: exact-tied, ")
        done = self.run_case(self.one, "--schedule", "gpip")
        self.assert_refused(done, f"no schedule matches 'gpip'; nearest: 1f1b {listing}")

    def test_a_reader_that_has_read_enough(self):
        words = [*TOOL, "list", "--corpus", self.corpus]
        done = start(["bash", "-c", f"{shlex.join(words)} | true; exit ${{PIPESTATUS[0]}}"])
        self.assertEqual((done.returncode, done.stderr), (141, ""))

    def test_nobody_can_read_what_it_prints(self):
        run = ["run", "--backend", f"{TOY}:Toy", "--corpus", self.corpus, "--case", "exact-mlp-sum"]
        said = "plumbline-case: standard output cannot be written\n"
        for words in run, [*run, "-v"], ["list", "--corpus", self.corpus], ["doctor", *run[1:5]]:
            for where in ">/dev/full", ">&-":
                with self.subTest(where, words=words):
                    done = start(["bash", "-c", f"{shlex.join([*TOOL, *words])} {where}"])
                    self.assertEqual((done.returncode, done.stderr), (1, said))

    def test_an_example_that_exists_is_kept(self):
        words = [*TOOL, "example", "mine.py"]
        made = start(words, self.folder)
        self.assertEqual((made.returncode, made.stdout), (0, f"mine.py: {TYPED} run --backend mine.py:Toy\n"))
        said = f"mine.py: exists already, and is kept; give another name: {TYPED} example FILE\n"
        self.assert_refused(start(words, self.folder), said)

    def test_a_single_name_is_a_list_of_one(self):
        for name, status in ("Single", 0), ("Other", 2):
            done = self.run_case(f"{self.names}:{name}")
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        said = "no case comes under the schedules of toy in NumPy: gpipe; the corpus has 1f1b"
        self.assertEqual(done.stderr, f"plumbline-case: {said}\n")
        done = self.run_case(f"{self.names}:Loss")
        self.assertIn("UNSUPPORTED exact-mlp-sum x 1f1b (2 ranks, own): losses beyond those supported: sum", done.stdout)
        plugin = [sys.executable, "-m", "pytest", "-p", "plumbline_case.pytest_plugin", "-q", self.names]
        options = ["--plumbline-corpus", self.corpus, "--plumbline-cases", "exact-mlp-sum", "--plumbline-backend"]
        self.assertIn("1 passed", start([*plugin, *options, f"{self.names}:Single"]).stdout)
        self.assertIn("no tests ran", start([*plugin, *options, f"{self.names}:Longer"]).stdout)

    def test_a_result_that_cannot_be_read_has_its_rank_and_key(self):
        done = self.run_case(f"{self.names}:BadKey")
        said = "ERROR exact-mlp-sum x 1f1b (2 ranks, own): rank 0: result key `0/loss/-/0` is not <step>/<kind>/<stage>/"
        self.assertIn(said, done.stdout)


NAMES = """
class Single(Toy): schedules, delivers = ("1f1b"), ("loss")
class Longer(Toy): schedules = ("1f1b-interleaved")
class Other(Toy): schedules = ("gpipe")
class Loss(Toy): losses = ("mse")
class Deliver(Toy): deliver = ("loss",)
class Capitals(Toy): schedules = ("1F1B",)
class BadKey(Toy):
    def run(self, case, prepared):
        results = super().run(case, prepared)
        results["0/loss/-/0"] = results.pop("0/loss/-/0/loss")
        return results
"""

if __name__ == "__main__":
    unittest.main()
