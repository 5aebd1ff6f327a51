"""What plumbline-case prints while it judges: on a terminal, elsewhere, and verbose.

    PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p progress_test.py
"""

import contextlib
import io
import os
import pty
import subprocess
import unittest
import unittest.mock

from wheel_support import PYTHON, TOOL, TOY, InFolder, export, start

from plumbline_case.judge import Verdict  # after wheel_support, which finds the package
from plumbline_case.progress import ERASE, PLAIN, RED, Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def verdict(number, status="PASS", clause="", log=""):
    return Verdict(f"case-{number}", "gpipe", 2, "own", status, clause, log)


class Lines(unittest.TestCase):
    def printed(self, verdicts, out=None, environment=(), verbose=False, begins=False, left_out=(), **more):
        out = out or io.StringIO()
        with unittest.mock.patch.dict(os.environ, {"TERM": "xterm", "NO_COLOR": "", "COLUMNS": "60"} | dict(environment)):
            with contextlib.redirect_stdout(out):
                with Progress(verbose, **more) as progress:
                    progress.begin(len(verdicts), left_out)
                    for one in verdicts:
                        if begins:
                            progress.working_on(one.case, one.schedule)
                        progress.finished(one)
                progress.summary()
        return out.getvalue()

    def test_passes_are_counted_and_failures_come_at_once(self):
        verdicts = [verdict(n) for n in range(40)]
        verdicts[20] = verdict(20, "FAIL", "wrong")
        printed = self.printed(verdicts, repeat=lambda v: f"run {v.case}")
        self.assertEqual(printed.splitlines(), [
            "10/40: 10 passed", "20/40: 20 passed", "FAIL case-20 x gpipe (2 ranks, own): wrong", "  repeat: run case-20",
            "30/40: 29 passed, 1 failed", "1 fail, 39 pass"])  # fmt: skip
        self.assertEqual(self.printed(verdicts[:9]), "9 pass\n")
        many = self.printed([verdict(n) for n in range(700)]).splitlines()
        self.assertEqual((len(many), many[0]), (10, "70/700: 70 passed"))

    def test_runs_without_a_verdict_are_grouped_by_reason_at_the_end(self):
        kinds = [("UNSUPPORTED", "no skips"), ("UNSUPPORTED", "a\nloss"), ("NOT JUDGED", "bounded"), ("UNSUPPORTED", "no skips")]
        kinds += [("NOT RUN", "the run ended before it")]
        verdicts = [verdict(n, *kind) for n, kind in enumerate(kinds)] + [verdict(7), verdict(8, "FAIL", "wrong")]
        grouped = ["NOT JUDGED 1 x: bounded", "NOT RUN 1 x: the run ended before it", "UNSUPPORTED 2 x: no skips",
                   "UNSUPPORTED 1 x: a loss"]  # fmt: skip
        summary = "1 fail, 1 not judged, 1 not run, 1 pass, 3 unsupported"
        self.assertEqual(self.printed(verdicts).splitlines(), [verdicts[-1].sentence(), *grouped, summary])
        self.assertEqual(self.printed(verdicts, verbose=True).splitlines(), [*(v.sentence() for v in verdicts), summary])

    def test_runs_under_other_schedules_are_counted(self):
        self.assertEqual(self.printed([verdict(0)], left_out=["zb-v", "1f1b", "zb-v"]).splitlines(), [
            "left out: 3 runs under schedules that describe does not name: 1f1b, zb-v", "1 pass"])  # fmt: skip

    def test_on_a_terminal_a_line_is_redrawn(self):
        verdicts = [verdict(0), verdict(1, "ERROR", "crashed", "backend.log"), verdict(2, "UNSUPPORTED", "no skips")]
        printed = self.printed(verdicts, Terminal(), begins=True, report="r")
        failure = f"{RED}ERROR case-1 x gpipe (2 ranks, own): crashed (see r/backend.log){PLAIN}\n"
        self.assertEqual(printed.split(ERASE), [
            "", "0/3: 0 passed", "0/3: 0 passed | case-0 x gpipe", "1/3: 1 passed | case-0 x gpipe",
            "1/3: 1 passed | case-1 x gpipe", failure, "2/3: 1 passed, 1 failed | case-1 x gpipe",
            "2/3: 1 passed, 1 failed | case-2 x gpipe", "3/3: 1 passed, 1 failed, 1 other | case-2 x gpipe",
            "UNSUPPORTED 1 x: no skips\n1 error, 1 pass, 1 unsupported\n"])  # fmt: skip
        self.assertNotIn("\x1b[3", self.printed(verdicts, Terminal(), {"NO_COLOR": "1"}))
        self.assertNotIn("\x1b", self.printed(verdicts, Terminal(), {"TERM": "dumb"}))
        self.assertNotIn("\x1b", self.printed(verdicts))
        narrow = self.printed(verdicts, Terminal(), {"COLUMNS": "12"}, begins=True).split(ERASE)
        self.assertIn("0/3: 0 pass", narrow)
        self.assertNotIn("see", self.printed(verdicts), "no report is kept")

    def test_after_an_exception_the_line_is_gone(self):
        out = Terminal()
        with unittest.mock.patch.dict(os.environ, {"TERM": "xterm"}), contextlib.redirect_stdout(out):
            with self.assertRaises(KeyboardInterrupt), Progress(False) as progress:
                progress.begin(3)
                raise KeyboardInterrupt
        self.assertTrue(out.getvalue().endswith(f"passed{ERASE}"), out.getvalue())


class Runs(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.corpus = os.path.join(cls.folder, "corpus")
        export(cls.corpus, "exact-mlp-sum", "exact-mlp-mean")

    def on_terminal(self, *words):
        ours, theirs = pty.openpty()
        environment = os.environ | {"PYTHONPATH": PYTHON, "TERM": "xterm", "NO_COLOR": ""}
        with open(ours, "rb", buffering=0) as screen:
            with subprocess.Popen([*TOOL, *words], env=environment, stdout=theirs, stderr=subprocess.STDOUT) as program:
                os.close(theirs)
                shown = b""
                with contextlib.suppress(OSError):  # Linux's way to say that the other end is closed
                    while piece := screen.read(1 << 16):
                        shown += piece
            return program.returncode, shown.decode().replace("\r\n", "\n").split(ERASE)

    def test_run_and_check(self):
        report = os.path.join(self.folder, "report")
        of_corpus, both = ["--corpus", self.corpus], "2/2: 2 passed"
        words = ["run", "--backend", f"{TOY}:Toy", *of_corpus, "--report", report]
        code, shown = self.on_terminal(*words)
        middle = [f"0/2: 0 passed{at}" for at in ("", " | exact-mlp-mean x 1f1b")]
        middle += [f"1/2: 1 passed | exact-mlp-{name} x 1f1b" for name in ("mean", "sum")]
        self.assertEqual((code, shown), (0, ["", *middle, f"{both} | exact-mlp-sum x 1f1b", "2 pass\n"]))
        code, shown = self.on_terminal("check", report, *of_corpus)
        self.assertEqual((code, shown), (0, ["", *middle, f"{both} | exact-mlp-sum x 1f1b", "2 pass\n"]))
        self.assertEqual(start([*TOOL, "check", report, *of_corpus]).stdout, "2 pass\n")
        verbose = start([*TOOL, "check", "-v", report, *of_corpus]).stdout
        self.assertEqual([line.split(" (")[0] for line in verbose.splitlines()],
                         ["PASS exact-mlp-mean x 1f1b", "PASS exact-mlp-sum x 1f1b", "2 pass"])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
