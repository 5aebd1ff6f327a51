"""Every exported file, and every message between plumbline and a backend, against the JSON schemas.

    PLUMBLINE_PROGRAM=build/plumbline PLUMBLINE_C_HOST=build/conformance/examples/c_host python3 -m unittest discover -s conformance/python/tests -p schema_test.py
"""

import copy
import glob
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

import jsonschema
from wheel_support import IN_FULL

HERE = os.path.dirname(os.path.abspath(__file__))
CONFORMANCE = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, ".."))

from plumbline_case.schema import FormatError  # noqa: E402
from plumbline_case.schema import check as schema_check  # noqa: E402

PROGRAM = os.environ["PLUMBLINE_PROGRAM"]
C_HOST = os.environ["PLUMBLINE_C_HOST"]
PEER = os.path.join(CONFORMANCE, "..", "scripts", "peer")
FILES = {
    "case.json": "case",
    "program.json": "program",
    "expected.json": "expected",
    "manifest.json": "manifest",
}


SCHEMAS = {}
for name in (*FILES.values(), "describe", "job", "plan"):
    with open(os.path.join(CONFORMANCE, "schema", name + ".schema.json"), encoding="utf-8") as text:
        SCHEMAS[name] = json.load(text)


def plumbline(*words):
    return subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True, timeout=600).stdout


def places(value, path=()):
    """Every place in a document: (path, value)."""
    yield path, value
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, (*path, key))
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, (*path, i))


def at(value, path):
    for step in path:
        value = value[step]
    return value


def corrupted(document, rng, everywhere):
    """A copy with one change at a random place: a member added, removed, of another type or out of range."""
    changed = copy.deepcopy(document)
    place = rng.choice(everywhere)
    value = at(changed, place)
    if isinstance(value, dict) and rng.random() < 0.7:
        if value and rng.random() < 0.5:
            value.pop(rng.choice(list(value)))
        else:
            value["unheard-of"] = 1
    elif place:
        at(changed, place[:-1])[place[-1]] = rng.choice([None, -1, 3, 0.5, True, "x", "", [], {}])
    return changed


class Schemas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        plumbline("export", "--case", "*", "-o", cls.folder.name)
        plumbline("export", "--case", "exact-mlp-sum", "--expected", "-o", os.path.join(cls.folder.name, "expected"))
        paths = glob.glob(os.path.join(cls.folder.name, "**", "*.json"), recursive=True)
        cls.documents = []
        for path in sorted(paths):
            with open(path, encoding="utf-8") as file:
                cls.documents.append((path, FILES[os.path.basename(path)], json.load(file)))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_schemas_are_schemas(self):
        for schema in SCHEMAS.values():
            jsonschema.Draft202012Validator.check_schema(schema)

    def test_every_export_is_valid(self):
        """Every one with PLUMBLINE_IN_FULL (scripts/nightly); otherwise an eighth."""
        self.assertEqual({name for _, name, _ in self.documents}, set(FILES.values()))
        validators = {name: jsonschema.Draft202012Validator(SCHEMAS[name]) for name in FILES.values()}
        for path, name, document in self.documents if IN_FULL else random.sample(self.documents, len(self.documents) // 8):
            self.assertEqual(list(validators[name].iter_errors(document)), [], path)

    def test_nothing_is_refused(self):
        for path, name, document in self.documents:
            if name == "manifest":
                self.assertEqual(document["refused"], [], path)

    def test_changed_files_are_refused(self):
        """One change at a random place of some documents."""
        seed = random.randrange(2**32)
        rng = random.Random(seed)
        refused = 0
        sample = rng.sample(self.documents, min(12, len(self.documents)))
        for _, name, document in sample:
            validator = jsonschema.Draft202012Validator(SCHEMAS[name])
            everywhere = [p for p, _ in places(document)]
            refused += sum(not validator.is_valid(corrupted(document, rng, everywhere)) for _ in range(4))
        self.assertGreater(refused, len(sample), f"seed {seed}")

    def test_the_loader_refuses_what_the_schemas_refuse(self):
        """Its own reader of JSON schemas, which needs no package, against jsonschema."""
        seed = random.randrange(2**32)
        rng = random.Random(seed)
        for _, name, document in rng.sample(self.documents, min(40 if IN_FULL else 10, len(self.documents))):
            validator = jsonschema.Draft202012Validator(SCHEMAS[name])
            everywhere = [p for p, _ in places(document)]
            schema_check(document, name, name)
            for _ in range(10):
                changed = corrupted(document, rng, everywhere)
                try:
                    schema_check(changed, name, name)
                    taken = True
                except FormatError:
                    taken = False
                self.assertEqual(taken, validator.is_valid(changed), f"seed {seed}: {name}: {changed}")

    def test_an_unknown_member_is_named_with_its_place(self):
        _, name, document = next(item for item in self.documents if item[1] == "case")
        changed = copy.deepcopy(document)
        changed["loss"]["scale"] = 2
        error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(SCHEMAS[name]).iter_errors(changed))
        self.assertEqual(
            f"{error.json_path}: {error.message}",
            "$.loss: Additional properties are not allowed ('scale' was unexpected)",
        )

    def test_the_page_lists_exactly_the_opset(self):
        with open(os.path.join(CONFORMANCE, "INTERPRETING.md"), encoding="utf-8") as file:
            page = file.read()
        listed = re.findall(r"^\| `((?:aten|plumbline)::[^`]*)` \| ([^|]*) \|", page, re.MULTILINE)
        self.assertEqual([f"{op}({arguments.strip()})" for op, arguments in listed], plumbline("export", "--opset").split("\n")[:-1])

    def test_programs_use_only_the_opset(self):
        opset = {}
        for line in plumbline("export", "--opset").splitlines():
            op, arguments = line[:-1].split("(")
            opset[op] = arguments.split(", ")
        for path, name, document in self.documents:
            if name != "program":
                continue
            for program in document["programs"]:
                for stage in program["stages"]:
                    for node in stage["nodes"]:
                        self.assertEqual(list(node["arguments"]), opset.get(node["op"]), f"{path}: {node}")

    def test_every_value_is_defined_once_before_it_is_used(self):
        for path, name, document in self.documents:
            if name != "program":
                continue
            for program in document["programs"]:
                for stage in program["stages"]:
                    self.check_values(path, stage)

    def test_a_stage_lists_the_parameters_and_buffers_of_which_it_has_a_copy(self):
        """In every program, whether or not that one uses them; but a stage behind an early exit has nothing to do."""
        for path, name, document in self.documents:
            for kind in ("parameters", "buffers") if name == "program" else ():
                owned = [{e["name"] for e in document[kind] if s in e["stages"]} for s in range(document["stages"])]
                for program in document["programs"]:
                    last = max((s for s, stage in enumerate(program["stages"]) if any(o["to"] == "model" for o in stage["outputs"])))
                    listed = [{e["name"] for e in stage[kind]} for stage in program["stages"]]
                    self.assertEqual(listed[: last + 1], owned[: last + 1], path)
                    for stage in program["stages"][last + 1 :]:
                        self.assertEqual(stage["nodes"], [], path)

    def test_slices_and_indices_are_in_range(self):
        slices = 0
        for path, name, document in self.documents:
            if name != "program":
                continue
            for stage in (stage for program in document["programs"] for stage in program["stages"]):
                for node in stage["nodes"]:
                    given = node["arguments"]
                    if node["op"] in ("aten::slice.Tensor", "aten::select.int"):
                        size = stage["values"][given["self"]["value"]]["shape"][given["dim"]]
                        if node["op"] == "aten::slice.Tensor":
                            slices += 1
                            self.assertTrue(0 <= given["start"] <= given["end"] <= size and given["step"] >= 1, f"{path}: {node}")
                        else:
                            self.assertTrue(0 <= given["index"] < size, f"{path}: {node}")
        self.assertGreater(slices, 0)

    def test_no_cell_of_a_schedule_is_empty_or_quoted(self):
        mine = os.path.join(self.folder.name, "mine.csv")
        with open(mine, "w", encoding="utf-8") as file:
            file.write('"0F0", ,0F1,,0F2,0F3,"0B0",0B1,0B2,0B3,\n,1F0,1F1,1F2,1F3,1B0,1B1, 1B2 ,1B3\n')
        plumbline("export", "--case", "exact-mlp-sum", "--schedule", mine, "--ranks", "2", "-o", os.path.join(self.folder.name, "mine"))
        paths = glob.glob(os.path.join(self.folder.name, "**", "schedule.csv"), recursive=True)
        self.assertGreater(len(paths), 100)
        for path in paths:
            with open(path, newline="", encoding="utf-8") as file:
                text = file.read()
            self.assertRegex(text, r"\A([^\s,\"]+(,[^\s,\"]+)*\r\n)+\Z", path)

    def check_values(self, path, stage):
        given = [e["value"] for k in ("inputs", "parameters", "buffers", "constants") for e in stage[k]]
        defined = [v for v in given if v is not None]
        for node in stage["nodes"]:
            for value in (v for _, a in places(node["arguments"]) if isinstance(a, dict) for v in [a.get("value")]):
                if isinstance(value, int):
                    self.assertIn(value, defined, f"{path}: {node}")
            defined.extend(node["results"])
        self.assertEqual(sorted(defined), list(range(len(stage["values"]))), path)
        for entry in stage["outputs"] + stage["buffer_updates"]:
            self.assertTrue(entry["value"] is None or entry["value"] in defined, path)


def answer(words, *more):
    """A backend's output, as JSON."""
    result = subprocess.run([*words, *more], check=True, capture_output=True, text=True, timeout=60)
    return json.loads(result.stdout)


@unittest.skipUnless(C_HOST, "c_host is not built: no cJSON")
class Protocol(unittest.TestCase):
    """Jobs as plumbline writes them, and the answers of plumbline's runtime and of the example backends."""

    BACKENDS = {
        "runtime": [PROGRAM, "backend"],
        "C host": [C_HOST],
        "own models": [sys.executable, os.path.join(HERE, "..", "examples", "train_backend.py")],
    }
    # These read the version of PyTorch from their environment.
    IN_PEER = {
        "mpi4py": [PEER, "torch", "2.15.0", "--", os.path.join(HERE, "..", "mpi4py_gpipe", "adapter.py")],
        "torch": [PEER, "torch", "2.15.0", "--", os.path.join(HERE, "..", "torch_pipelining", "adapter.py")],
    }

    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.folder = holder.name
        if subprocess.run([PEER, "torch", "2.15.0", "--check"], capture_output=True).returncode == 0:
            cls.BACKENDS = cls.BACKENDS | cls.IN_PEER
        else:
            print("not tested, because scripts/peer torch 2.15.0 is not installed:", *cls.IN_PEER)
        quick = ["--case", "exact-mlp-sum", "--schedule", "1f1b", "--ranks", "2"]
        host, trainer = (shlex.join(cls.BACKENDS[name]) for name in ("C host", "own models"))
        cls.jobs = {
            name: cls.job_of(name, *words)
            for name, words in {
                "plain": quick,
                "options": [*quick, "--mutant", "drop-last-microbatch", "--recompute", "always", "--microbatches", "2", "--wire", "slow"],
                "remat": [*quick, "--remat", "bytes", "--remat-policy", "seed"],
                "throughput": [*quick, "--throughput"],
                "users' cases": [*quick, "--corpus", cls.corpus()],
                "files": [*quick, "--backend", host],
                "files, micro-batches": [*quick, "--backend", host, "--microbatches", "2"],
                "own models": ["--backend", trainer, "--ranks", "2"],
            }.items()
        }

    @classmethod
    def corpus(cls):
        """A folder with a user's case."""
        folder = os.path.join(cls.folder, "corpus")
        os.mkdir(folder)
        with open(os.path.join(folder, "cases.toml"), "w", encoding="utf-8") as file:
            file.write('schema = "plumbline-cases/1"\n[[case]]\nid = "mine"\ntitle = "t"\nwhy = "w"\n'
                       'truth = "same-order"\nmodel = "mlp"\nloss = {kind = "mse", reduction = "mean"}\n')
        return folder

    @classmethod
    def job_of(cls, name, *words):
        """The path of the first job.json of a run with these arguments; the run may fail (torch may be missing)."""
        report = os.path.join(cls.folder, name)
        completed = subprocess.run([PROGRAM, "run", *words, "--report", report], capture_output=True, text=True, timeout=300)
        found = sorted(glob.glob(os.path.join(report, "results", "*", "job.json")))
        if not found:
            raise AssertionError(completed.stdout + completed.stderr)
        return found[0]

    def wrong(self, name, document):
        """The best match of its violations, or None."""
        return jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(SCHEMAS[name]).iter_errors(document))

    def documents(self):
        """(schema, whose, document) of all messages."""
        for name, path in self.jobs.items():
            with open(path, encoding="utf-8") as file:
                yield "job", name, json.load(file)
        for name, words in self.BACKENDS.items():
            yield "describe", name, answer(words, "describe")
            asked = {"runtime": "plain", "own models": "own models"}.get(name, "files")
            yield "plan", name, answer(words, "plan", "--job", self.jobs[asked])

    def test_messages_are_valid(self):
        for schema, whose, document in self.documents():
            self.assertIsNone(self.wrong(schema, document), f"{schema} of {whose}")
            if schema == "plan":
                self.assertGreater(len(document), 0, whose)

    def test_jobs_have_every_member(self):
        """Ensures that the test above has covered every member."""
        members, of_cases = set(), set()
        for schema, _, document in self.documents():
            if schema == "job":
                members |= set(document)
                of_cases |= {key for case in document["cases"] for key in case}
        # A job for a device is made only where there is one.
        self.assertEqual(members | {"device"}, set(SCHEMAS["job"]["$defs"]["of_names"]["properties"]))
        with open(self.jobs["plain"], encoding="utf-8") as file:
            plain = json.load(file)
        self.assertIsNone(self.wrong("job", plain | {"device": "cuda"}))
        self.assertIsNotNone(self.wrong("job", plain | {"device": "gpu"}))
        self.assertEqual(of_cases, {"id", "schedule", "results", "folder"})

    def test_changed_messages_are_refused(self):
        seed = random.randrange(2**32)
        rng = random.Random(seed)
        for schema, whose, document in self.documents():
            refused = 0
            everywhere = [path for path, _ in places(document)]
            for _ in range(60):
                changed = corrupted(document, rng, everywhere)
                refused += self.wrong(schema, changed) is not None
            self.assertGreater(refused, 0, f"seed {seed}: {schema} of {whose}")

    def test_plumbline_refuses_the_descriptions_that_the_schema_refuses(self):
        seed = random.randrange(2**32)
        rng = random.Random(seed)
        for whose in ("C host", "own models"):
            document = answer(self.BACKENDS[whose], "describe")
            everywhere = [path for path, _ in places(document)]
            for number in range(12 if IN_FULL else 3):
                changed = corrupted(document, rng, everywhere) if number else document
                path = os.path.join(self.folder, "describe.json")
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(changed, file)
                program = f"sh -c 'test $0 = describe && cat {path}'"
                completed = subprocess.run([PROGRAM, "doctor", "--backend", program], capture_output=True, text=True, timeout=60)
                taken = "ok         describe" in completed.stdout
                self.assertNotEqual(taken, "failed     describe" in completed.stdout, completed.stdout)
                self.assertEqual(taken, self.wrong("describe", changed) is None, f"seed {seed}: {changed}\n{completed.stdout}")

    def test_wrong_jobs_are_refused(self):
        with open(self.jobs["throughput"], encoding="utf-8") as file:
            job = json.load(file)

        def planned(document):
            path = os.path.join(self.folder, "job.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(document, file)
            return subprocess.run([PROGRAM, "backend", "plan", "--job", path], capture_output=True, text=True, timeout=60)

        self.assertEqual(planned(job).returncode, 0)
        changes = (
            {"format": "plumbline-job/2"}, {"ranks": 0}, {"ranks": "2"}, {"seed": -1}, {"seed": 0.5}, {"timeout_seconds": -1},
            {"timeout_seconds": None}, {"cases": {}}, {"cases": [{"id": "exact-mlp-sum", "schedule": "1f1b"}]}, {"unheard-of": 1},
            {"cases": [{"id": "exact-mlp-sum", "schedule": "1f1b", "results": "r", "rank": 1}]}, {"microbatches": 0},
            {"recompute": "sometimes"}, {"mutant": 3}, {"throughput": [{"schedule": "1f1b"}]},
        )  # fmt: skip
        for change in changes if IN_FULL else changes[::3]:
            result = planned(job | change)
            self.assertEqual(result.returncode, 2, f"{change}: {result.stdout}")
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)
            self.assertIn(next(iter(change)), result.stderr)
            self.assertIsNotNone(self.wrong("job", job | change), change)
        for missing in ("format", "ranks", "seed", "timeout_seconds", "cases")[:: 1 if IN_FULL else 3]:
            less = {key: value for key, value in job.items() if key != missing}
            self.assertEqual(planned(less).returncode, 2, missing)
            self.assertIsNotNone(self.wrong("job", less), missing)

    def test_wrong_plans_are_refused(self):
        describe = os.path.join(self.folder, "description.json")
        with open(describe, "w", encoding="utf-8") as file:
            json.dump(answer(self.BACKENDS["own models"], "describe"), file)
        path = os.path.join(self.folder, "plan.json")
        program = f"sh -c 'case $0 in describe) cat {describe} ;; plan) cat {path} ;; *) exit 9 ;; esac'"
        good = {"id": "transformer", "schedule": "one-rank", "supported": True}
        for plan, valid in (
            ([good], True),
            ([good | {"why": "it can"}], True),
            ([good | {"supported": False, "why": "no memory"}], True),
            ([good | {"supported": False}], False),
            ([good | {"supported": False, "why": ""}], False),
            ([good | {"supported": 1}], False),
            ([good | {"unheard-of": 1}], False),
            ([{"id": "transformer", "supported": True}], False),
            (good, False),
            (None, False),
        ):
            with open(path, "w", encoding="utf-8") as file:
                json.dump(plan, file)
            words = ["run", "--backend", program, "--case", "transformer", "--ranks", "2", "--report", os.path.join(self.folder, "p")]
            completed = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60)
            refused = "NOT STARTED sh: plan" in completed.stdout
            self.assertEqual(refused, not valid, f"{plan}\n{completed.stdout}")
            self.assertEqual(self.wrong("plan", plan) is None, valid, plan)


class CommandLine(unittest.TestCase):
    def run_plumbline(self, *words):
        return subprocess.run([PROGRAM, "export", *words], capture_output=True, text=True, timeout=600)

    def test_wrong_use_is_one_line(self):
        for words, part in (
            (["--case", "exact-mlp-sum"], "nowhere to write to"),
            (["--case", "nothing-like-it", "-o", "x"], "no case matches"),
            (["--case", "exact-mlp-sum", "-o", "/proc/nowhere"], "/proc/nowhere"),
            (["--case", "exact-mlp-sum", "--schedule", "no-such", "-o", "x"], "no schedule matches"),
            (["--case", "exact-mlp-sum", "--check-lock", "/nowhere/lock"], "/nowhere/lock"),
        ):
            result = self.run_plumbline(*words)
            self.assertEqual(result.returncode, 2, f"{words}: {result.stderr}")
            self.assertIn(part, result.stderr)
            self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_the_lock(self):
        with tempfile.TemporaryDirectory() as folder:
            lock = os.path.join(folder, "lock")
            one = ["--case", "exact-mlp-sum"]
            self.assertEqual(self.run_plumbline(*one, "--lock", lock).returncode, 0)
            self.assertEqual(self.run_plumbline(*one, "--check-lock", lock).returncode, 0)
            other = self.run_plumbline(*one, "--seed", "2", "--check-lock", lock)
            self.assertEqual(other.returncode, 1)
            self.assertIn("exact-mlp-sum/1f1b-4/tensors.safetensors differs from the lock file", other.stdout)
            out = os.path.join(folder, "out")
            self.assertEqual(self.run_plumbline(*one, "-o", out).returncode, 0)
            subprocess.run(["sha256sum", "--quiet", "-c", lock], cwd=out, check=True, timeout=60)


if __name__ == "__main__":
    unittest.main()
