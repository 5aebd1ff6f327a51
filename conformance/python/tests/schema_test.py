"""Every exported file against the JSON schemas, by the jsonschema library and by the loader's own small reader.

    PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p schema_test.py
"""

import copy
import glob
import importlib.util
import json
import os
import random
import re
import subprocess
import tempfile
import unittest

import jsonschema

HERE = os.path.dirname(os.path.abspath(__file__))
CONFORMANCE = os.path.join(HERE, "..", "..")
PROGRAM = os.environ["PLUMBLINE_PROGRAM"]
FILES = {
    "case.json": "case",
    "program.json": "program",
    "expected.json": "expected",
    "manifest.json": "manifest",
}


def loaders_schema_reader():
    """plumbline_case.schema by itself: the package needs torch, it does not."""
    path = os.path.join(HERE, "..", "plumbline_case", "schema.py")
    spec = importlib.util.spec_from_file_location("plumbline_case_schema", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


OWN = loaders_schema_reader()
SCHEMAS = {}
for name in FILES.values():
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
        self.assertEqual({name for _, name, _ in self.documents}, set(FILES.values()))
        for path, name, document in self.documents:
            errors = list(jsonschema.Draft202012Validator(SCHEMAS[name]).iter_errors(document))
            self.assertEqual(errors, [], path)
            self.assertIsNone(OWN.first_wrong(document, SCHEMAS[name], SCHEMAS[name], ""), path)

    def test_nothing_is_refused(self):
        for path, name, document in self.documents:
            if name == "manifest":
                self.assertEqual(document["refused"], [], path)

    def test_both_readers_refuse_the_same(self):
        """One change at a random place of some documents: a member more, less, of another type, out of range."""
        seed = random.randrange(2**32)
        rng = random.Random(seed)
        refused = 0
        sample = rng.sample(self.documents, min(12, len(self.documents)))
        for path, name, document in sample:
            validator = jsonschema.Draft202012Validator(SCHEMAS[name])
            everywhere = [p for p, _ in places(document)]
            for _ in range(4):
                changed = copy.deepcopy(document)
                place = rng.choice(everywhere)
                spoilt = at(changed, place)
                if isinstance(spoilt, dict) and rng.random() < 0.7:
                    if spoilt and rng.random() < 0.5:
                        spoilt.pop(rng.choice(list(spoilt)))
                    else:
                        spoilt["unheard-of"] = 1
                elif place:
                    at(changed, place[:-1])[place[-1]] = rng.choice([None, -1, 3, 0.5, True, "x", "", [], {}])
                valid = validator.is_valid(changed)
                wrong = OWN.first_wrong(changed, SCHEMAS[name], SCHEMAS[name], "")
                self.assertEqual(valid, wrong is None, f"seed {seed}: {path} at {place}: {wrong}")
                refused += not valid
        self.assertGreater(refused, len(sample), f"seed {seed}")

    def test_an_unknown_member_is_named_with_its_place(self):
        _, name, document = next(item for item in self.documents if item[1] == "case")
        changed = copy.deepcopy(document)
        changed["loss"]["scale"] = 2
        self.assertEqual(
            OWN.first_wrong(changed, SCHEMAS[name], SCHEMAS[name], ""), "loss.scale: a member that is not known"
        )

    def test_the_page_lists_exactly_the_opset(self):
        with open(os.path.join(CONFORMANCE, "INTERPRETING.md"), encoding="utf-8") as file:
            page = file.read()
        listed = re.findall(r"^\| `(aten::[^`]*)` \| ([^|]*) \|", page, re.MULTILINE)
        self.assertEqual([f"{op}({arguments.strip()})" for op, arguments in listed], plumbline("export", "--opset").split("\n")[:-1])

    def test_programs_use_the_opset_as_it_is(self):
        opset = {}
        for line in plumbline("export", "--opset").splitlines():
            op, arguments = line[:-1].split("(")
            opset[op] = arguments.split(", ")
        used = set()
        for path, name, document in self.documents:
            if name != "program":
                continue
            for program in document["programs"]:
                for stage in program["stages"]:
                    for node in stage["nodes"]:
                        self.assertEqual(list(node["arguments"]), opset.get(node["op"]), f"{path}: {node}")
                        used.add(node["op"])
        self.assertEqual(set(opset) - used, set(), "operators that no case uses")

    def test_every_value_is_defined_once_before_it_is_used(self):
        for path, name, document in self.documents:
            if name != "program":
                continue
            for program in document["programs"]:
                for stage in program["stages"]:
                    self.check_values(path, stage)

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
            self.assertIn("exact-mlp-sum/1f1b-4/tensors.safetensors has other bytes", other.stdout)
            out = os.path.join(folder, "out")
            self.assertEqual(self.run_plumbline(*one, "-o", out).returncode, 0)
            subprocess.run(["sha256sum", "--quiet", "-c", lock], cwd=out, check=True, timeout=60)


if __name__ == "__main__":
    unittest.main()
