"""plumbline-case doctor: the step that it names, and what it says to do, for each way in which a backend is not right.

    PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p doctor_test.py
"""

import os
import sys
import unittest

from wheel_support import IN_FULL, TOOL, TOY, TYPED, InFolder, export, paste, start

STEPS = ["file", "program", "launcher", "describe", "schedules", "plan", "run", "result files", "keys", "first comparison"]

CLASSES = """from plumbline_case.examples.toy import Toy, WrongScale
class Kinds(Toy): delivers = ("grads",)
class Orders(Toy): schedules = ("1fb1",)
class Some(Toy): schedules = ("1f1b", "zb-v")
class Declines(Toy): losses = ()
class Plans(Toy):
    def why_not(self, case): raise ValueError("no plan")
class Fails(Toy):
    def prepare(self, case): raise ValueError("no room")
class Undelivered(Toy): delivers = ("loss", "partial")
class Few(Toy): delivers = ("input-grad",)
class Renamed(Toy):
    def run(self, case, prepared):
        results = super().run(case, prepared)
        results["0/grad/-/-/layers.0.bias"] = results.pop("0/grad/-/-/layers.0.fc.bias")
        return results
class Garbled(Toy):
    def run(self, case, prepared):
        results = super().run(case, prepared)
        results["0/grads/-/-/w"] = results["0/loss/-/0/loss"]
        return results
"""

# A program: what a verb does in place of what the toy does.
PROGRAM = """from plumbline_case.examples.toy import Toy
import os, sys
verb, does = sys.argv[1], os.environ["DOES"]
out = sys.argv[sys.argv.index("--out") + 1] if verb == "run" else ""
if not does.startswith(verb): Toy().main()
elif does == "describe chats": print("hello")
elif does == "plan forgets": print("[]")
elif does == "run says nothing": pass
else:
    print("@plumbline case 0 begins", flush=True)
    folder = os.path.join(out, "1f1b", "exact-mlp-sum")
    os.makedirs(folder)
    if does == "run cuts": open(os.path.join(folder, "rank1.safetensors"), "w").write("?")
    if does == "run counts": open(os.path.join(folder, "rank2.safetensors"), "w").close()
    print("@plumbline case 0 done", flush=True)
"""


class Doctor(InFolder):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.corpus = os.path.join(cls.folder, "corpus")
        export(cls.corpus, "exact-mlp-sum", "exact-tied", "mlp")
        cls.written("mine.py", CLASSES)
        cls.written("program.py", PROGRAM)

    def examine(self, spec, *more, **environment):
        words = [*TOOL, "doctor", "--corpus", self.corpus, "--backend", spec, *more]
        return start(words, self.folder, **environment)

    def assert_failed(self, done, step, *parts):
        at = STEPS.index(step)
        lines = done.stdout.splitlines()
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        for line, name in zip(lines[:at], STEPS):
            self.assertTrue(line.startswith(f"ok         {name}: "), done.stdout)
        self.assertTrue(lines[at].startswith(f"failed     {step}: "), done.stdout)
        for part in parts:
            self.assertIn(part, lines[at])
        self.assertEqual(lines[at + 1 :], [f"not tried  {name}" for name in STEPS[at + 1 :]])

    def test_a_backend_that_is_right(self):
        for spec, more, parts in (
            (f"{TOY}:Toy", [], ("plan: exact-mlp-sum x 1f1b on 2 ranks is supported; of 3 runs 1 are\n", "files: 1, 48 ")),
            (f"{TOY}:Toy", ["--ranks", "2"], ("launcher: none: 2 processes\n", "result files: 2, 96 tensors\n")),
            ("mine.py:Some", [], ("schedules: 1f1b (without a case in this corpus: zb-v)\n",)),
            (f"'{sys.executable}' program.py", [], ("program: /",)),
        ):
            done = self.examine(spec, *more, DOES="nothing else")
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            lines = done.stdout.splitlines()
            self.assertEqual([line.partition(": ")[0] for line in lines], [f"ok         {name}" for name in STEPS])
            self.assertIn("first comparison: PASS exact-mlp-sum x 1f1b (2 ranks, own): 48 tensors", lines[-1])
            for part in parts:
                self.assertIn(part, done.stdout)

    def test_the_step_that_fails_in_a_class(self):
        """A sample has one fault of each step."""
        seen, again = set(), f"{TYPED} run --backend mine.py:"
        faults = (
            ("Kinds", "describe", "Kinds: describe: delivers[0]: expected one of", f"; try: {TYPED} backend mine.py:Kinds"),
            ("Nobody", "program", "mine.py has no class Nobody", "it has Kinds, "),
            ("Orders", "schedules", "no case comes under 1fb1, which describe names; give some of 1f1b, or \"any\""),
            ("Declines", "plan", "none of the 3 runs is supported", "; 1 x losses beyond those supported: sum"),
            ("Plans", "plan", "exited with code 1: ValueError: no plan (mine.py:7); all that it wrote is in DIR/backend.log"),
            ("Fails", "run", f"ValueError: no room (mine.py:9); all that it wrote is in DIR/backend.log after: {again}Fails "),
            ("Undelivered", "keys", "are missing: 0/partial/0/0/layers.0.fc.bias, ", "let `delivers` not name partial"),
            ("Renamed", "keys", "1 of 48 do not belong to exact-mlp-sum: 0/grad/-/-/layers.0.bias", "0/grad/-/-/layers.0.fc.bias"),
            ("Garbled", "keys", "rank 0: result key `0/grads/-/-/w` is not <step>/<kind>/"),
            ("WrongScale", "first comparison", "FAIL exact-mlp-sum x 1f1b (2 ranks, own): step 0: gradient", "1/4 of", again),
        )
        for name, step, *parts in faults:
            if step in seen and not IN_FULL:
                continue
            seen.add(step)
            with self.subTest(name):
                self.assert_failed(self.examine(f"mine.py:{name}"), step, *parts)

    def test_a_corpus_without_expected_results(self):
        export(corpus := os.path.join(self.folder, "bare"), "exact-mlp-sum", more=("--ranks", "2"))
        why = "plan: none of the 1 runs is supported and exact, so there is nothing to try; 1 x the case was exported without --exp"
        self.assert_failed(self.examine(f"{TOY}:Toy", "--corpus", corpus), "plan", why)

    def test_a_comparison_of_nothing_is_no_success(self):
        said = "SKIPPED exact-mlp-sum x 1f1b (2 ranks, own): nothing to compare: the case has no values of the kinds that"
        self.assert_failed(self.examine("mine.py:Few"), "first comparison", said)

    def test_what_it_says_to_try_is_pasted(self):
        done = self.examine("mine.py:Fails")
        line = done.stdout.partition(" after: ")[2].splitlines()[0].replace(" DIR", " kept")
        again = paste(line, self.folder)
        self.assertIn("ValueError: no room (mine.py:9) (see kept/backend.log)\n", again.stdout, again.stderr)
        with open(os.path.join(self.folder, "kept", "backend.log"), encoding="utf-8") as log:
            self.assertIn("ValueError: no room", log.read())

    def test_the_step_that_fails_in_a_program(self):
        for does, step, *parts in (
            ("describe chats", "describe", "expected one JSON value, got 'hello\\n'; try: ", "program.py describe"),
            ("plan forgets", "plan", "no answer for exact-mlp-sum x 1f1b; every case of the job needs one"),
            ("run says nothing", "run", "it said nothing; rank 0 has to print `@plumbline case 0 begins` and `... done`"),
            ("run does nothing", "result files", "none below --out; for rank 0 there should be 1f1b/exact-mlp-sum/rank0.safeten"),
            ("run cuts", "result files", "rank 1: 1 bytes are too few for a safetensors file"),
            ("run counts", "result files", "1f1b/exact-mlp-sum/rank2.safetensors: no such rank; the job has 2 ranks: 0 to 1"),
        ):
            with self.subTest(does):
                self.assert_failed(self.examine(f"'{sys.executable}' program.py", DOES=does), step, *parts)

    def test_it_does_not_start(self):
        self.assert_failed(self.examine("nowhere.py:Mine"), "file", "no file nowhere.py")
        self.assert_failed(self.examine("no-such-program"), "program", "no program 'no-such-program' in PATH; install it")
        self.assert_failed(self.examine("./mine.py --fast"), "program", "./mine.py is no program that may be started; chmod +x")
        launcher = "sh -c 'echo rank'"
        done = self.examine(f"{TOY}:Toy", "--launcher", launcher)
        self.assert_failed(done, "launcher", "does not start 2 ranks of `echo rank`", "they printed 1 lines; try: sh -c")

    def test_wrong_use(self):
        for words, part in (
            (["--backend", "mine.py:Some", "--corpus", "/nowhere"], "/nowhere: no cases"),
            (["--backend", "mine.py:Some", "--corpus", self.corpus, "--ranks", "3"], "--ranks 3: the corpus has cases on 2"),
            ([], "the following arguments are required: --backend"),
        ):
            done = start([*TOOL, "doctor", *words], self.folder)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(part, done.stderr)


if __name__ == "__main__":
    unittest.main()
