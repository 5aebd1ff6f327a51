"""What the adapter of DualPipe delivers of a DualPipe with a planted fault. In the environment of scripts/peer:

    export PLUMBLINE_PROGRAM=$PWD/build/plumbline
    scripts/tests/in_peer.sh --of dualpipe 1.0.0 -m unittest discover -s conformance/python/tests -p planted_dualpipe_test.py
"""

import unittest

from planted import sentence

START = "from adapter import DualPipe; DualPipe(overlapped=False).main()"
# The modules get copies of the user's inputs, in which the gradients stay.
INPUTS_APART = """
from dualpipe import dualpipe
scatter = dualpipe.scatter
dualpipe.scatter = lambda *args: [[x.detach().requires_grad_(x.requires_grad) for x in xs] for xs in scatter(*args)]
"""
NO_OUTPUTS = """
from dualpipe import dualpipe
gather = dualpipe.gather
dualpipe.gather = lambda *args: tuple(None for _ in gather(*args))
"""


class DualPipe(unittest.TestCase):
    def of(self, plant, case):
        return sentence("dualpipe_deepseek", plant, START, case, "dualpipe")

    def test_gradients_that_do_not_reach_the_inputs_of_the_user(self):
        self.assertRegex(self.of("", "exact-input-gradients"), "^PASS ")
        self.assertRegex(self.of(INPUTS_APART, "exact-input-gradients"), r"^FAIL .*: input-grad `\w+` \S+ is missing")

    def test_an_evaluation_that_returns_nothing(self):
        self.assertRegex(self.of("", "exact-eval-tied"), "^PASS ")
        self.assertRegex(self.of(NO_OUTPUTS, "exact-eval-tied"), r"^FAIL .*: output `\w+` \S+ is missing")


if __name__ == "__main__":
    unittest.main()
