"""What the adapter of PyTorch's pipelining delivers of a PyTorch with a planted fault. In the environment of scripts/peer:

    export PLUMBLINE_PROGRAM=$PWD/build/plumbline
    scripts/tests/in_peer.sh -m unittest discover -s conformance/python/tests -p planted_torch_test.py
"""

import unittest

from planted import sentence

START = "from adapter import Pipelining; Pipelining('static', False, False, 'cpu').main()"
# On each rank the first two forwards change places.
OTHER_ORDER = """
from torch.distributed.pipelining import schedules

class Other(schedules.ScheduleInterleaved1F1B):
    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        for row in self.pipeline_order.values():
            first, second = [i for i, action in enumerate(row) if action is not None][:2]
            row[first], row[second] = row[second], row[first]

schedules.ScheduleInterleaved1F1B = Other
"""


class Torch(unittest.TestCase):
    def of(self, plant):
        return sentence("torch_pipelining", plant, START, "exact-mlp-mean", "interleaved-1f1b")

    def test_a_class_of_another_order_is_an_error(self):
        self.assertRegex(self.of(""), "^PASS ")
        self.assertRegex(self.of(OTHER_ORDER), r"^ERROR .*: Other: action 0 of rank \d is (\d)F1, that of schedule.csv is \1F0\b")


if __name__ == "__main__":
    unittest.main()
