"""Runs every script of docs/hall_of_bugs.md with one version of one engine, and compares with that version's column:
minutes.

    PLUMBLINE_PEER="torch 2.15.0" python3 -m unittest discover -s conformance/python/tests -p bug_scripts_test.py
"""

import os
import re
import subprocess
import unittest

from hall_of_bugs import ENGINES, ROOT

PEER, VERSION = os.environ["PLUMBLINE_PEER"].split()
ENGINE = next(engine for engine in ENGINES if engine.peer == PEER)


class Scripts(unittest.TestCase):
    def test_each_shows_what_the_page_says(self):
        for script, row in ENGINE.bugs().items():
            path = os.path.join(ENGINE.folder, "deviations", script)
            ended = subprocess.run([os.path.join(ROOT, "scripts", "peer"), PEER, VERSION, "--", path],
                                   capture_output=True, text=True, timeout=300)  # fmt: skip
            with self.subTest(script):
                self.assertIn(f"{PEER} {VERSION}", ended.stdout, ended.stderr)
                self.assertEqual(ended.returncode, 0 if row[VERSION] == "-" else 1, ended.stdout)
                failed = re.search(r"\w+(Error|Exception)\b|killed by|no answer", ended.stdout)
                if row[VERSION] == "silent":
                    self.assertIsNone(failed, ended.stdout)


if __name__ == "__main__":
    unittest.main()
