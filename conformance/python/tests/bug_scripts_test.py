"""Runs every script of docs/hall_of_bugs.md with one version of PyTorch, and compares with that version's column: minutes.

    PLUMBLINE_PEER_VERSION=2.15.0 python3 -m unittest discover -s conformance/python/tests -p bug_scripts_test.py
"""

import os
import re
import subprocess
import unittest

from hall_of_bugs import ROOT, TORCH, bugs

VERSION = os.environ["PLUMBLINE_PEER_VERSION"]


class Scripts(unittest.TestCase):
    def test_each_shows_what_the_page_says(self):
        for script, row in bugs().items():
            ended = subprocess.run([os.path.join(ROOT, "scripts", "peer"), VERSION, "--", os.path.join(TORCH, "deviations", script)],
                                   capture_output=True, text=True, timeout=300)  # fmt: skip
            with self.subTest(script):
                self.assertIn(f"torch {VERSION}", ended.stdout, ended.stderr)
                self.assertEqual(ended.returncode, 0 if row[VERSION] == "-" else 1, ended.stdout)
                if row[VERSION] == "silent":
                    self.assertIsNone(re.search(r"\w+(Error|Exception): ", ended.stdout), ended.stdout)


if __name__ == "__main__":
    unittest.main()
