"""The reason of a failure: what is chosen of what a backend wrote, as in plumbline (command_backend_test.cc).

    PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p reasons_test.py
"""

import os
import unittest

from wheel_support import TOY, TOOL, InFolder, export, start

from plumbline_case.number_text import one_line  # after wheel_support, which finds the package
from plumbline_case.reasons import reason_in

DASHES = "-" * 74
AS_ROOT = f"""{DASHES}
mpirun has detected an attempt to run as root.

Running as root is *strongly* discouraged as any mistake (e.g., in
defining TMPDIR) or bug can result in catastrophic damage to the OS
file system, leaving your system in an unusable state.

We reiterate our advice against doing so - please proceed at your own risk.
{DASHES}
"""
ENDED = f"""{DASHES}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{DASHES}
"""
SIGNAL = f"""{DASHES}
mpirun noticed that process rank 1 with PID 7 on node vm exited on signal 9 (Killed).
{DASHES}
"""


class Reasons(InFolder):
    def test_the_telling_line(self):
        for text, reason in (
            ("", ""),
            ("a\nlast words\n\n", "last words"),
            ("x\nplumbline: rank 1: why\nValueError: no\n", "rank 1: why"),
            ('Traceback (most recent call last):\n  File "a.py", line 1\nValueError: no\nmore\n', "ValueError: no"),
            ("[rank3]: torch.cuda.OutOfMemoryError: out\nmore\n", "[rank3]: torch.cuda.OutOfMemoryError: out"),
            ("torch.distributed.ChildFailedError: \nlast\n", "last"),
            (AS_ROOT, "mpirun has detected an attempt to run as root."),
            (ENDED, "Primary job terminated normally, but 1 process returned a non-zero exit code."),
            (f"python3: can't open file 'a.py'\n{ENDED}", "python3: can't open file 'a.py'"),
            (f"a warning\n{ENDED}{SIGNAL}", SIGNAL.splitlines()[1]),
            (f"{DASHES}\nRuntimeError: in a box\n{DASHES}\nlast\n", "RuntimeError: in a box"),
            (f"name value\n{DASHES}\na 1\nfatal\n", "fatal"),
        ):
            self.assertEqual(reason_in(text), reason)

    def test_no_word_controls_the_terminal(self):  # as one_line_test.cc
        for text, shown in (
            ("\x1b[2J\x7f", "\\x1b[2J\\x7f"),
            ("\u009b2J", "\\u009b2J"),
            ("a\u2028b\u202ec\u2066d\u200f", "a\\u2028b\\u202ec\\u2066d\\u200f"),
            ("\u00a0 \u00e9 \u20ac \u2027\u202f", "\u00a0 \u00e9 \u20ac \u2027\u202f"),
        ):
            self.assertEqual(one_line(text), shown)

    def test_a_launcher_that_refuses(self):
        corpus = os.path.join(self.folder, "corpus")
        export(corpus, "exact-mlp-sum")
        notice = self.written("notice", AS_ROOT)
        launcher = self.written("launcher", f"cat '{notice}' >&2; exit 1\n")
        words = ["run", "--backend", f"{TOY}:Toy", "--corpus", corpus, "--ranks", "2", "--launcher", f"sh {launcher}"]
        done = start([*TOOL, *words])
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
        why = "(mpirun has detected an attempt to run as root.)"
        self.assertIn(f"sh does not start 2 ranks of `echo rank`: exited with code 1 {why}, they printed 0 lines", done.stderr)


if __name__ == "__main__":
    unittest.main()
