"""What INTERPRETING.md says of deliveries and events, tried: a backend delivers plumbline's own results with one change.

    PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p contract_protocol_test.py
"""

import json
import os
import shutil
import subprocess
import tempfile
import unittest

from wheel_support import sample

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.abspath(os.environ["PLUMBLINE_PROGRAM"])
KINDS = ["forward", "output", "loss", "backward", "partial", "input-grad", "hook-calls", "accumulated", "grad", "grad-norm",
         "buffer", "param", "optimizer-state"]
THREE = "exact-mlp-*"
OFFLOADED = "exact-offload-1f1b"
CASES = ["exact-mlp-sum", "exact-mlp-mean", "exact-mlp-bf16"]  # those of the pattern, in the order of a job
holder = tempfile.TemporaryDirectory()
FOLDER = holder.name


def setUpModule():
    unittest.addModuleCleanup(holder.cleanup)
    for name in ("player.py", "tensor_files.py"):
        shutil.copy(os.path.join(HERE, name), FOLDER)
    with open(os.path.join(FOLDER, "player.toml"), "w", encoding="utf-8") as file:
        file.write('schema = "plumbline-backend/1"\nargv = ["python3", "player.py"]\n')
    under_gpipe = (THREE, "boundary-hooks", "hooks-after", "train-mlp", "recurrent-bounded", "clip-read", "clip-bounded",
                   "skip-overflow-clip", "exact-dp-mlp", "exact-hooks-after-frozen")
    for schedule, cases in ("gpipe", ",".join(under_gpipe)), ("own", OFFLOADED):
        report = os.path.join(FOLDER, "source", schedule)
        ended = plumbline("run", "--case", cases, "--schedule", schedule, "--ranks", "2", "--report", report)
        assert ended.returncode == 0, ended.stdout + ended.stderr


def plumbline(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=300, cwd=FOLDER)


class Played(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.describe = json.loads(plumbline("backend", "describe").stdout)

    def play(self, cases, delivers=KINDS, schedule="gpipe", **options):
        """{case: verdict} of the player with these options, and what plumbline printed."""
        describe = {key: self.describe[key] for key in ("protocol", "libtorch", "order")} | options.pop("describe", {})
        describe |= {"name": "player", "version": "1", "schedules": "any", "level": "program", "delivers": delivers}
        source = os.path.join(FOLDER, "source", "*", "results", "threads-2")
        with open(os.path.join(FOLDER, "player.json"), "w", encoding="utf-8") as file:
            json.dump(options | {"describe": {k: v for k, v in describe.items() if v is not None}, "source": source}, file)
        report = os.path.join(FOLDER, "report")
        shutil.rmtree(report, ignore_errors=True)
        words = ["--case", cases, "--schedule", schedule, "--ranks", "2", "--report", report]
        ended = plumbline("run", "--backend", "player.toml", *words)
        with open(os.path.join(report, "report.json"), encoding="utf-8") as file:
            return {v["case"]: v for v in json.load(file)["verdicts"]}, ended.stdout + ended.stderr

    def assert_play(self, case, status, words="", **options):
        verdicts, printed = self.play(case, **options)
        self.assertEqual(verdicts[case]["status"], status, printed)
        self.assertIn(words, printed)
        return verdicts[case]


class Deliveries(Played):
    def test_unchanged_results_pass(self):
        self.assertEqual(self.assert_play("train-mlp", "pass")["checked"], ["loss", "param"])
        self.assert_play("boundary-hooks", "pass")

    def test_a_kind_that_the_case_does_not_have_fails_if_delivered(self):
        key = next(k for k in self.keys("train-mlp") if "/param/" in k)
        add = {f"0/grad/-/-/{key.split('/', 4)[4]}": key}
        self.assert_play("train-mlp", "fail", "was not expected", add=add)
        self.assert_play("train-mlp", "pass", add=add, delivers=["loss", "param", "buffer"])

    def test_gradients_of_a_case_with_an_optimizer_are_those_of_its_read_steps(self):
        self.assertEqual(self.assert_play("clip-read", "pass")["checked"], ["grad", "grad-norm", "loss", "param"])
        read = sorted(k for k in self.keys("clip-read") if "/grad/" in k)
        self.assertEqual({key.split("/")[0] for key in read}, {"2"})
        self.assert_play("clip-read", "fail", "was not expected", add={"0" + key[1:]: key for key in read})

    def test_the_norm_of_all_gradients(self):
        for case in ("clip-read", "clip-bounded"):
            self.assert_play(case, "fail", "norm of all gradients `norm` f64[] is missing", changes=[["/grad-norm/", "drop"]])
            self.assert_play(case, "pass", changes=[["/grad-norm/", "drop"]], delivers=["loss", "param"])
        self.assert_play("clip-read", "fail", "norm of all gradients `norm`", changes=[["/grad-norm/", "other value"]])
        # A skipped step has none.
        norms = sorted(k for k in self.keys("skip-overflow-clip") if "/grad-norm/" in k)
        self.assertEqual([key.split("/")[0] for key in norms], ["1", "7"])
        self.assert_play("skip-overflow-clip", "fail", "step 4: norm of all gradients `norm` f64[] was not expected",
                         add={"4/grad-norm/-/-/norm": norms[0]})

    def test_replicas_need_a_backend_with_this_feature(self):
        reason = "2 data-parallel replicas, and the backend does not name the feature 'replicas'"
        self.assert_play("exact-dp-mlp", "unsupported", reason)
        self.assert_play("exact-dp-mlp", "pass", describe={"features": ["replicas"]})
        self.assert_play("exact-dp-mlp", "fail", "gradient", describe={"features": ["replicas"]}, changes=[["/grad/", "other value"]])

    def test_offloads_need_a_backend_with_this_feature(self):
        reason = "its schedule has OFFLOAD and RELOAD, and the backend does not name the feature 'offload'"
        self.assert_play(OFFLOADED, "unsupported", reason, schedule="own")
        self.assert_play(OFFLOADED, "pass", schedule="own", describe={"features": ["offload"]})

    def test_a_case_without_a_value_to_compare_does_not_pass(self):
        self.assert_play("train-mlp", "skipped", "nothing to compare", delivers=["grad", "forward"])
        self.assert_play("recurrent-bounded", "skipped", "nothing to compare", delivers=["partial"])

    def test_bounded_cases_ignore_the_values_of_four_kinds(self):
        # Without a LibTorch, a same-order case is bounded.
        bounded = {"libtorch": None}
        changes = [("drop", "is missing"), ("F64", "wrong dtype"), ("flat", "wrong shape")]
        for case, kinds, of_them, describe, tried in (
            ("recurrent-bounded", "forward|backward|partial", "forward|backward|partial", {}, changes),
            ("hooks-after", "forward|backward|partial|accumulated", "accumulated", bounded, sample(changes, 3)),
        ):
            verdict = self.assert_play(case, "pass", describe=describe, changes=[[f"/({kinds})/", "other value"]])
            self.assertEqual(set(verdict["checked"]) & set(kinds.split("|")), set())
            for change, words in tried:
                self.assert_play(case, "fail", words, describe=describe, changes=[[f"/({of_them})/", change]])
            self.assert_play(case, "fail", "gradient `", describe=describe, changes=[["/grad/", "other value"]])
        for case, describe in sample([(c, d) for c in ("boundary-hooks", "hooks-after") for d in ({}, bounded)], 3):
            self.assert_play(case, "fail", "hook-calls `", describe=describe, changes=[["/hook-calls/", "other value"]])
            self.assert_play(case, "fail", describe=describe, changes=[["/hook-calls/", "drop"]])
        self.assert_play("hooks-after", "fail", "gradient in the hook `", changes=[["/accumulated/", "other value"]])

    def test_results_of_a_gpu_are_held_to_bounds(self):
        verdict = self.assert_play("hooks-after", "pass", describe={"device": "cuda"})
        self.assertEqual((verdict["device"], verdict["truth"]), ("cuda", "bounded"))
        self.assertIn("the backend computes on cuda, the oracle on cpu", verdict["reason"])

    def test_a_parameter_without_a_gradient_has_nothing_of_an_accumulation(self):
        """Its stage delivers no `partial`, `accumulated` or `hook-calls` of it, and one of them too many fails."""
        of_kind = lambda kind: {key.split("/", 4)[4] for key in self.keys("exact-hooks-after-frozen") if f"/{kind}/" in key}
        frozen = of_kind("param") - of_kind("grad")
        self.assertTrue(frozen)
        for kind in "partial", "accumulated", "hook-calls":
            self.assertEqual(of_kind(kind) & frozen, set())
            (other, *_) = (key for key in self.keys("exact-hooks-after-frozen") if f"/{kind}/" in key)
            add = {"/".join([*other.split("/")[:4], min(frozen)]): other}
            self.assert_play("exact-hooks-after-frozen", "fail", "was not expected", add=add)

    def keys(self, case):
        from tensor_files import read_tensors

        return read_tensors(os.path.join(FOLDER, f"source/gpipe/results/threads-2/gpipe/{case}/rank0.safetensors"))


class Events(Played):
    def assert_statuses(self, statuses, words="", **options):
        verdicts, printed = self.play(THREE, **options)
        self.assertEqual([verdicts[case]["status"] for case in CASES], statuses, printed)
        self.assertIn(words, printed)

    def test_other_output_is_free(self):
        self.assert_statuses(["pass"] * 3, events="among other words")

    def test_the_order_of_cases_is_not_checked(self):
        self.assert_statuses(["pass"] * 3, order="backwards")

    def test_without_begins_a_crash_belongs_to_no_case(self):
        self.assert_statuses(["pass"] * 3, events="without begins")
        crash = {"crashes in": [CASES[1]]}
        self.assert_statuses(["pass", "error", "pass"], "ValueError: no more", **crash)
        self.assert_statuses(["pass", "not-run", "not-run"], "did not start again: ValueError", events="without begins", **crash)

    def test_only_one_rank_may_speak(self):
        self.assert_statuses(["error", "not-run", "not-run"], "`case 0 begins` came a second time", events="from every rank")

    def test_nothing_follows_or_precedes_an_event(self):
        self.assert_statuses(["error"] * 3, "unknown event 'case 0 done", events="with CR")
        hidden = '"rank 0: @plumbline case 0 begins" on standard output is no event, since other words precede it'
        self.assert_statuses(["error"] * 3, f"ended with exit code 0 without running it; {hidden}", events="after other words")


if __name__ == "__main__":
    unittest.main()
