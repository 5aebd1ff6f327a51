"""The judge in Python against plumbline's own: equal sentences about the same files.

    PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p judge_test.py

The results are those of plumbline's runtime: right ones of exact cases; those of mutants, each in an exact case
(judged_mutants.py); and with values, element types, shapes, names and files changed at random. With PLUMBLINE_IN_FULL
(scripts/nightly) these are every exact case and every mutant, otherwise some. PLUMBLINE_SEED repeats the choice of a failure,
which names it.
"""

import fnmatch
import glob
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import judged_mutants
import numpy as np
from wheel_support import IN_FULL

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from plumbline_case import judge  # noqa: E402
from plumbline_case.case import load  # noqa: E402
from plumbline_case.results import KINDS  # noqa: E402
from plumbline_case.report_folder import Checker, left_nothing  # noqa: E402
from plumbline_case.tensors import Stored, encode_tensors, read_tensors  # noqa: E402

PROGRAM = os.environ["PLUMBLINE_PROGRAM"]
SEED = int(os.environ.get("PLUMBLINE_SEED") or random.randrange(2**32))
AGAIN = f"PLUMBLINE_SEED={SEED}"


def plumbline(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=900)


def exact_cases():
    listed = json.loads(plumbline("list", "--case", "*", "--json").stdout)
    return {c["id"] for c in listed if c["truth"] == "exact"}


def report(folder):
    with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
        return json.load(file)["verdicts"]


def chosen(case, schedule, ranks):
    """The options that select a run. A schedule of the case's own has no name and says on how many ranks it runs."""
    return ["--case", case] + ([] if schedule == "own" else ["--schedule", schedule, "--ranks", str(ranks)])


class Judge(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder, cls.exact, cls.exported = holder.name, exact_cases(), set()
        cls.corpus = os.path.join(cls.folder, "corpus")

    def export(self, case, schedule, ranks):
        if (case, schedule, ranks) not in self.exported:
            done = plumbline("export", *chosen(case, schedule, ranks), "--expected", "-o", self.corpus)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.exported.add((case, schedule, ranks))

    def compare(self, folder):
        """Holds each judged verdict of a run against its sentence in report.json. Returns the statuses."""
        checker, statuses = Checker(folder, self.corpus), []
        runs = {(run["case"], run["schedule"], run["ranks"], run["transport"]): run for run in checker.record["runs"]}
        for said in report(folder):
            identity = (said["case"], said["schedule"], said["ranks"], said["transport"])
            if left_nothing(said):
                continue
            judged = judge.Verdict(*identity, *checker.judge(runs[identity]))  # only the files speak
            if said["truth"] == "exact":
                self.assertEqual(judged.sentence(), said["sentence"], AGAIN)
            else:
                self.assertEqual(judged.status, "NOT JUDGED")
            statuses.append(judged.status)
        return statuses

    def test_right_results(self):
        """And a case of another kind of truth, which is not judged."""
        cases = sorted(self.exact) if IN_FULL else random.Random(SEED).sample(sorted(self.exact), 40)
        for case in (",".join(cases), "mlp"):
            self.export(case, "1f1b", 2)
            out = os.path.join(self.folder, "right")
            shutil.rmtree(out, ignore_errors=True)
            plumbline("run", "--case", case, "--schedule", "1f1b,own", "--ranks", "2", "--report", out)
            statuses = self.compare(out)
            if case == "mlp":
                self.assertEqual(statuses, ["NOT JUDGED"])
            else:
                self.assertGreater(statuses.count("PASS"), 0.8 * len(cases), AGAIN)

    def run_mutant(self, mutant, run, *more):
        """The folder of the report."""
        out = os.path.join(self.folder, "mutant")
        shutil.rmtree(out, ignore_errors=True)
        plumbline("run", *chosen(*run), "--mutant", mutant, "--report", out, *more)
        return out

    def test_what_a_run_recorded_without_leaving_files(self):
        """Passes under --keep failures, and a case in whose middle the run was interrupted."""
        self.export("exact-mlp-sum", "gpipe", 2)
        for keep, status, clause in ("failures", "PASS", " tensors ("), ("all", "NOT RUN", "the run ended before it was done"):
            with self.subTest(keep=keep):
                out = os.path.join(self.folder, "keep-" + keep)
                words = ["run", "--case", "exact-mlp-sum", "--schedule", "gpipe", "--ranks", "2", "--keep", keep, "--report", out]
                self.assertEqual(plumbline(*words).returncode, 0)
                files = glob.glob(os.path.join(out, "results", "threads-2", "gpipe", "exact-mlp-sum", "*"))
                self.assertEqual(bool(files), keep == "all")
                if files:
                    with open(files[0], "r+b") as file:
                        file.truncate(100)
                    os.remove(os.path.join(out, "report.json"))
                    os.truncate(os.path.join(out, "results.jsonl"), 0)
                checker, theirs = Checker(out, self.corpus), plumbline("check", out)
                (judged,) = map(checker.verdict, checker.record["runs"])
                self.assertEqual((judged.status, checker.problems), (status, []))
                self.assertIn(clause, judged.clause)
                self.assertEqual(theirs.returncode, 0 if keep == "failures" else 3, theirs.stdout + theirs.stderr)

    def test_mutants(self):
        """The wrong results of mutants, each in an exact case: of some, or of every one."""
        runs = judged_mutants.runs(self.exact)
        for mutant in sorted(runs) if IN_FULL else random.Random(SEED).sample(sorted(runs), 8):
            with self.subTest(AGAIN, mutant=mutant):
                out = self.run_mutant(mutant, runs[mutant])
                self.export(*runs[mutant])
                statuses = self.compare(out)
                self.assertTrue(statuses, "no result is judged")
                self.assertLessEqual(set(statuses), {"FAIL", "MISTRUSTED"})

    def test_every_mutant_has_a_run_or_a_reason_for_none(self):
        """Exactly one; and no exact case has the features that a reason says are missing."""
        needs = {mutant["name"]: mutant["needs"] for mutant in json.loads(plumbline("mutants", "--json").stdout)}
        self.assertEqual(needs.keys(), judged_mutants.recorded().keys())
        unmet = [mutant for mutant in needs if judged_mutants.unmet(needs[mutant])]
        without = [*judged_mutants.listed(judged_mutants.NO_RESULTS), *judged_mutants.listed(judged_mutants.NO_DIFFERENCE)]
        self.assertEqual(sorted([*judged_mutants.runs(self.exact), *unmet, *without]), sorted(needs))
        listed = json.loads(plumbline("list", "--case", "*", "--json").stdout)
        for features in judged_mutants.NEEDS.values():
            having = {case["id"] for case in listed if set(features) <= set(case["features"])}
            self.assertTrue(having, features)
            self.assertEqual(having & self.exact, set(), features)

    @unittest.skipUnless(IN_FULL, "in scripts/nightly")
    def test_mutants_without_a_run_leave_no_wrong_result(self):
        recorded = judged_mutants.recorded()
        for mutant in judged_mutants.listed(judged_mutants.NO_RESULTS):
            with self.subTest(mutant=mutant):
                run = recorded[mutant][0]
                said = report(self.run_mutant(mutant, (run["case"], run["schedule"], run["ranks"]), "--timeout", "10"))
                self.assertEqual([one["status"] for one in said if one["status"] not in ("error", "timeout")], [])
                self.assertEqual([one["sentence"] for one in said if not left_nothing(one)], [])
        for mutant in judged_mutants.listed(judged_mutants.NO_DIFFERENCE):
            with self.subTest(mutant=mutant):
                said = report(self.run_mutant(mutant, ("exact-*", "gpipe", 2)))
                said = [one for one in said if not any(fnmatch.fnmatch(one["case"], sums) for sums in judged_mutants.OTHER_SUMS)]
                self.assertEqual([one["sentence"] for one in said if one["status"] not in ("pass", "unsupported")], [])
                self.assertGreater(len(said), 100)

    def test_every_kind_has_its_noun_and_its_place_in_the_order(self):
        """Results that no case has, fewer and fewer kinds of them: each time the first one is reported. A sample takes away two
        kinds at a time."""
        out = os.path.join(self.folder, "kinds")
        self.export("exact-mlp-sum", "gpipe", 2)
        plumbline("run", "--case", "exact-mlp-sum", "--schedule", "gpipe", "--ranks", "2", "--report", out)
        (said,) = report(out)[:1]
        for file in ("report.json", "results.jsonl"):
            os.remove(os.path.join(out, file))
        (path,) = glob.glob(os.path.join(out, "results", "*-2", "gpipe", "exact-mlp-sum", "rank0.safetensors"))
        right, named = read_tensors(path), set()
        for first in range(len(KINDS)) if IN_FULL else range(1, len(KINDS), 2):
            surplus = {f"0/{kind}/-/-/x": np.ones(1) for kind in KINDS[first:]}
            with open(path, "wb") as file:
                file.write(encode_tensors(right | surplus))
            checker = Checker(out, self.corpus)
            judged = checker.verdict(checker.record["runs"][0])
            named.add(judged.clause.split(" `")[0])
            self.assertIn(judged.sentence() + "\n", plumbline("check", out).stdout)
        self.assertIn("step 0: norm of all gradients", named)
        self.assertGreater(len(named), 5)
        self.assertEqual(said["status"], "pass")

    def test_a_replica_that_delivers_nothing_more(self):
        """The other replica has the same results, and must not stand for it."""
        out, (case, ranks) = os.path.join(self.folder, "replicas"), ("exact-dp-mlp", 2)
        self.export(case, "gpipe", ranks)
        plumbline("run", "--case", case, "--schedule", "gpipe", "--ranks", str(ranks), "--report", out)
        self.assertEqual([said["status"] for said in report(out)], ["pass"])
        for file in ("report.json", "results.jsonl"):
            os.remove(os.path.join(out, file))
        (path,) = glob.glob(os.path.join(out, "results", "*", "gpipe", case, "rank1.safetensors"))
        results = read_tensors(path)
        kept = {key: array for key, array in results.items() if key.split("/")[1] not in ("grad", "param")}
        self.assertLess(len(kept), len(results))
        with open(path, "wb") as file:
            file.write(encode_tensors(kept))
        checker = Checker(out, self.corpus)
        judged = checker.verdict(checker.record["runs"][0])
        self.assertEqual(judged.status, "FAIL")
        self.assertRegex(judged.clause, r"^step 0: gradient `.* is missing .*\[replica 1 \(rank 1\) lacks 0/grad/")
        self.assertIn(judged.sentence() + "\n", plumbline("check", out).stdout)

    def changed(self, case, schedule, ranks):
        """A function that runs the case anew, lets `change(results)` change those of one rank, and returns the verdict, which
        has the sentence of `plumbline check`."""
        out, pristine = (os.path.join(self.folder, f"{name}-{self._testMethodName}") for name in ("changed", "pristine"))
        self.export(case, schedule, ranks)
        plumbline("run", "--case", case, "--schedule", schedule, "--ranks", str(ranks), "--report", pristine)
        self.assertEqual([said["status"] for said in report(pristine)], ["pass"])
        for file in ("report.json", "results.jsonl"):
            os.remove(os.path.join(pristine, file))

        def verdict(rank, change):
            shutil.rmtree(out, ignore_errors=True)
            shutil.copytree(pristine, out)
            (path,) = glob.glob(os.path.join(out, "results", "*", schedule, case, f"rank{rank}.safetensors"))
            results = read_tensors(path)
            change(results)
            with open(path, "wb") as file:
                file.write(encode_tensors(results))
            checker = Checker(out, self.corpus)
            judged = checker.verdict(checker.record["runs"][0])
            said = plumbline("check", out).stdout
            if judged.status != "PASS":
                self.assertIn(judged.sentence() + "\n", said)
            else:
                self.assertIn("+ pass 1\n", said)
            return judged

        return verdict

    def test_copies_that_differ(self):
        """The wrong copy is judged and named, whichever rank has it."""
        verdict, key = self.changed("exact-tied", "1f1b", 2), "0/grad/-/-/tok.weight"
        disagree = f"rank 0 and rank 1 disagree on {key} (copies of one tensor must be equal); judged: that of rank "
        for rank in 0, 1:
            judged = verdict(rank, lambda results: results.update({key: 2 * results[key]}))
            self.assertEqual(judged.status, "FAIL")
            self.assertRegex(judged.clause, r"^step 0: gradient `tok.weight` of stages 0, 1 f32.*; it is 2 times what is exp")
            self.assertIn(f"[{disagree}{rank}]", judged.clause)
            judged = verdict(rank, lambda results: results.pop(key))
            self.assertEqual(judged.status, "FAIL")
            self.assertRegex(judged.clause, r"^step 0: gradient `tok.weight` of stages 0, 1 f32\S* is missing")
            self.assertIn(f"[rank {rank} has a copy of tok.weight but lacks {key}, which another rank has]", judged.clause)
        expected = load(os.path.join(self.corpus, "exact-tied", "1f1b-2")).expected()
        key, zeros = next((k, x.array) for k, x in expected.items() if "/grad/" in k and not x.array.all())
        negative = np.where(zeros == 0, zeros.dtype.type(-0.0), zeros)
        first, second = (verdict(rank, lambda results: results.update({key: negative})) for rank in (0, 1))
        (judged,) = (judged for judged in (first, second) if judged.status != "PASS")  # the other rank has it alone
        disagree = f"rank 0 and rank 1 disagree on {key} (copies of one tensor must be equal); judged: that of rank 1"
        self.assertEqual((judged.status, judged.clause), ("FAIL", disagree), "equal as numbers, not bit for bit")

    def test_each_key_is_read_a_few_times_however_many_ranks_there_are(self):
        tensor, ranks = Stored("F32", np.zeros(1, np.float32)), []
        for rank in range(16):
            names = [f"stage{rank}.{number}" for number in range(20)]
            ranks.append((rank, {f"0/{kind}/-/-/{name}": tensor for kind in ("grad", "param") for name in names}))
        keys = sum(len(results) for _, results in ranks)
        with mock.patch.object(judge, "parse_key", wraps=judge.parse_key) as parsed:
            merged, contested = judge.merge(ranks)
        self.assertEqual((len(merged), contested), (keys, {}))
        self.assertLessEqual(parsed.call_count, 3 * keys)

    def test_a_result_under_another_key(self):
        verdict = self.changed("exact-mlp-sum", "1f1b", 2)
        judged = verdict(1, lambda results: results.update({"0/loss/1/3/loss": results.pop("0/loss/-/3/loss")}))
        self.assertIn("micro-batch 3: loss `loss` f32[] was not expected; 0/loss/-/3/loss is missing (and 1 more", judged.clause)
        judged = verdict(1, lambda results: results.update({"0/loss/1/3/loss": results["0/loss/-/3/loss"]}))
        self.assertTrue(judged.clause.endswith("loss `loss` f32[] was not expected"), judged.clause)
        judged = verdict(1, lambda results: results.update({"0/grad-norm/-/-/norm": results["0/loss/-/3/loss"]}))
        self.assertTrue(judged.clause.endswith("was not expected; the case has no results of kind grad-norm"), judged.clause)

    def test_a_file_without_results(self):
        judged = self.changed("exact-mlp-sum", "1f1b", 2)(1, dict.clear)
        self.assertEqual(judged.status, "FAIL")
        self.assertRegex(judged.clause, r" is missing \(and \d+ more tensors\) \[the file of rank 1 has no tensors\]$")

    def test_corrupted_results(self):
        """Against `plumbline check`, which judges the files that are there."""
        rng = random.Random(SEED)
        out = os.path.join(self.folder, "corrupted")
        self.export("exact-mlp*", "1f1b", 2)
        plumbline("run", "--case", "exact-mlp*", "--schedule", "1f1b", "--ranks", "2", "--report", out)
        runs = [said for said in report(out) if said["status"] == "pass"]
        self.assertGreater(len(runs), 2)
        for file in ("report.json", "results.jsonl"):
            os.remove(os.path.join(out, file))
        pristine = os.path.join(self.folder, "pristine")
        shutil.copytree(out, pristine)
        seen = set()
        for _ in range(6):
            shutil.rmtree(out)
            shutil.copytree(pristine, out)
            for said in runs:
                corrupt(rng, os.path.join(out, "results", f"{said['transport']}-2", "1f1b", said["case"]))
            checker, theirs = Checker(out, self.corpus), plumbline("check", out)
            text = theirs.stdout + theirs.stderr
            for said in runs:
                judged = checker.verdict(next(r for r in checker.record["runs"] if r["case"] == said["case"]))
                seen.add(judged.status)
                expected = judged.clause if judged.status == "ERROR" else judged.sentence()
                if judged.status != "PASS":
                    self.assertIn(expected + "\n", text, AGAIN)
                else:
                    self.assertNotIn(f"FAIL {said['case']} ", text, f"{AGAIN}: {judged.sentence()}")
        self.assertLessEqual({"FAIL"}, seen, AGAIN)


def corrupt(rng, folder):
    """Changes one file of one run."""
    path = os.path.join(folder, rng.choice(sorted(os.listdir(folder))))
    tensors = read_tensors(path)
    key = rng.choice(sorted(tensors))
    array = tensors[key].copy()
    flat = array.reshape(-1)
    change = rng.randrange(10)
    if change == 0:
        os.remove(path)
        return
    if change == 1:
        del tensors[key]
    elif change == 2:
        tensors[f"7/{rng.choice(['loss', 'grad', 'grad-norm', 'forward'])}/-/3/x y\tz"] = array
    elif change == 3:
        tensors["0/nonsense/-/-/x"] = array
    elif change == 4:
        tensors[key] = array.astype(np.float64)
    elif change == 5:
        tensors[key] = array.reshape(1, *array.shape)
    elif flat.size and flat.dtype.kind == "f":
        value = rng.choice([float("nan"), float("inf"), -0.0, 5e-324, 1e22, 16777217, 0.1, -1.25e-7, 123456792.0,
                            rng.uniform(-1e3, 1e3), rng.uniform(0, 1) * 2.0 ** rng.randrange(-140, 127)])  # fmt: skip
        for i in rng.sample(range(flat.size), min(flat.size, rng.randrange(1, 3))):
            with np.errstate(all="ignore"):
                flat[i] = value
        tensors[key] = array
    with open(path, "wb") as file:
        file.write(encode_tensors(tensors))


if __name__ == "__main__":
    unittest.main()
