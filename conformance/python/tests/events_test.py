"""The same events of a backend under plumbline and under plumbline-case: each case has one status.

PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p events_test.py
"""

import json
import os
import shlex
import shutil
import sys
import unittest

from wheel_support import HERE, PROGRAM, TOOL, InFolder, export, start

CASES = ["exact-mlp-bf16", "exact-mlp-mean", "exact-mlp-sum"]
DESCRIBE = {"protocol": 1, "name": "player", "version": "1", "schedules": "any", "level": "program",
            "delivers": ["loss", "grad"]}  # fmt: skip
PASS, FAIL, ERROR = ["pass"] * 3, ["fail"] * 3, ["error"] * 3


class Events(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in "player.py", "tensor_files.py":
            shutil.copy(os.path.join(HERE, name), cls.folder)
        cls.corpus = os.path.join(cls.folder, "corpus")
        export(cls.corpus, *CASES)
        for case in CASES:  # the player's results are the expected ones
            os.makedirs(folder := os.path.join(cls.folder, "source", "1f1b", case))
            expected = os.path.join(cls.corpus, case, "1f1b-2", "expected.safetensors")
            shutil.copy(expected, os.path.join(folder, "rank0.safetensors"))

    def run_player(self, program, *more):
        report = os.path.join(self.folder, "report")
        shutil.rmtree(report, ignore_errors=True)
        backend = shlex.join([sys.executable, os.path.join(self.folder, "player.py")])
        words = ["--backend", backend, "--case", ",".join(CASES), "--schedule", "1f1b", "--report", report]
        return start([*program, "run", *words, *more]), report

    def of_plumbline(self):
        """The statuses in the order of the job, and what was printed."""
        done, report = self.run_player([PROGRAM], "--ranks", "2")
        with open(os.path.join(report, "report.json"), encoding="utf-8") as file:
            return [verdict["status"] for verdict in json.load(file)["verdicts"]], done.stdout + done.stderr

    def of_plumbline_case(self):
        """The same."""
        done, _ = self.run_player(TOOL, "--corpus", self.corpus, "-v")
        heads = (line.split(" x 1f1b (")[0].rpartition(" ") for line in done.stdout.splitlines() if " x 1f1b (" in line)
        said = {case: status.lower().replace(" ", "-") for status, _, case in heads}
        return [said.get(case, "no verdict") for case in CASES], done.stdout + done.stderr

    def test_both_come_to_the_same_statuses(self):
        left = ["pass", "not-run", "not-run"]
        crash = {"crashes in": ["exact-mlp-mean"]}  # the second case of both jobs
        for statuses, options in (
            (PASS, {"events": "all"}),
            (PASS, {"events": "without begins"}),
            (PASS, {"events": "among other words"}),
            (FAIL, {"events": "without begins", "changes": [["/grad/", "other value"]]}),
            (ERROR, {"events": "failed"}),
            (ERROR, {"events": "failed without begins"}),
            (ERROR, {"events": "with CR"}),
            (["error", "not-run", "not-run"], {"events": "from every rank"}),
            (["pass", "error", "pass"], {"events": "all"} | crash),
            (left, {"events": "without begins"} | crash),
        ):
            with self.subTest(**options):
                document = {"describe": DESCRIBE, "source": os.path.join(self.folder, "source")}
                self.written("player.json", json.dumps(document | options))
                for found, printed in self.of_plumbline(), self.of_plumbline_case():
                    self.assertEqual(found, statuses, printed)


if __name__ == "__main__":
    unittest.main()
