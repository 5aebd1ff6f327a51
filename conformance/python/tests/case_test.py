"""The loader in NumPy: files, slices of the batch, formats.

PLUMBLINE_PROGRAM=build/plumbline python3 -m unittest discover -s conformance/python/tests -p case_test.py
"""

import json
import os
import re
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unittest

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from plumbline_case.case import EXTRAS, GIVENS  # noqa: E402
from plumbline_case import FormatError, Results, bf16_to_f32, f32_to_bf16, load, read_tensors, write_tensors  # noqa: E402
from plumbline_case.compare import differences  # noqa: E402
from plumbline_case.examples.toy import Toy  # noqa: E402
from plumbline_case.results import parse_key  # noqa: E402
from plumbline_case.tensors import Stored, read_stored  # noqa: E402

PROGRAM = os.environ["PLUMBLINE_PROGRAM"]


def export(folder, case, *more):
    done = subprocess.run(
        [PROGRAM, "export", "--case", case, *more, "-o", folder], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return os.path.join(folder, case, "1f1b-4")


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        holder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(holder.cleanup)
        cls.pristine = export(holder.name, "exact-mlp-sum")
        cls.contents = {path.name: path.read_bytes() for path in pathlib.Path(cls.pristine).iterdir()}

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.case = holder.name
        for name, content in self.contents.items():
            with open(os.path.join(self.case, name), "wb") as file:
                file.write(content)

    def refusal(self):
        try:
            load(self.case).tensors
        except FormatError as error:
            self.assertNotIn("\n", str(error))
            return str(error)
        return "accepted"

    def change(self, file, edit):
        document = json.loads(self.contents[file])
        edit(document)
        with open(os.path.join(self.case, file), "w", encoding="utf-8") as text:
            json.dump(document, text)

    def test_unchanged_files_are_accepted(self):
        self.assertEqual(self.refusal(), "accepted")

    def test_unknown_members(self):
        self.change("case.json", lambda document: document["loss"].update(scale=2))
        self.assertIn("case.json: loss: unknown member 'scale'; expected kind, reduction, ignored_target", self.refusal())

    def test_missing_members(self):
        self.change("case.json", lambda document: document["loss"].pop("kind"))
        self.assertIn("case.json: loss: member 'kind' is missing", self.refusal())

    def test_whole_numbers_are_integers(self):
        self.change("program.json", lambda document: document.update(opset=1.0))
        self.assertIn("program.json: opset: expected 1, got 1.0", self.refusal())

    def test_whole_numbers_as_indices(self):
        def edit(document):
            stage = document["programs"][0]["stages"][0]
            stage["inputs"][0]["value"] = float(stage["inputs"][0]["value"])

        self.change("program.json", edit)
        self.assertIn("programs[0].stages[0].inputs[0].value: expected integer or null, got ", self.refusal())

    def test_members_that_older_readers_lack(self):
        def edit(document):
            document["loss"]["class_weights"] = [1.0, 2.0]
            document["steps"][0]["loss_divisor"] = 4.0
            document["steps"].append({"kind": "optimizer"})
            clip = {"norm": "inf", "max": 1, "epsilon": 0}
            document["optimizer"] = {"kind": "sgd", "learning_rate": 0.1, "momentum": 0, "clip": clip, "loss_scale": 2}

        self.assertEqual(load(self.case).extras(), set())
        self.change("case.json", edit)
        case = load(self.case)
        self.assertEqual(case.extras(), {"class_weights", "clip", "loss_divisor", "loss_scale"})
        self.assertLessEqual(case.extras(), set(EXTRAS))
        self.assertEqual((case.loss_divisor(0), case.loss_divisor(1)), (4.0, 1))

    def test_ways_to_give_a_batch_are_declined_unless_named(self):
        self.assertEqual(load(self.case).givens(), set())
        self.change("case.json", lambda document: document.update(divided=True))
        self.assertIn("a batch that its user divides", self.planned(Toy())["why"])
        self.assertTrue(self.planned(type("Divided", (Toy,), {"givens": ("divided",)})())["supported"])
        with self.assertRaisesRegex(ValueError, "its user divides the batch"):
            load(self.case).batch_inputs(0)

        def edit(document):
            document.update(divided=True, whole_gradients=True, input_gradients=True)
            document["steps"][0]["microbatches"][1]["input_gradients"] = False

        self.change("case.json", edit)
        case = load(self.case)
        self.assertEqual(case.givens(), {"divided", "whole_gradients", "some_gradients"})
        self.assertLessEqual(case.givens(), set(GIVENS))
        self.assertEqual([case.needs_gradients(0, m) for m in (0, 1)], [True, False])

    def test_several_targets_are_given_in_the_structure_of_the_case(self):
        with tempfile.TemporaryDirectory() as folder:
            case = load(export(folder, "exact-heads"))
            whole = {name: case.tensors["step/0/target/" + name] for name in ("boxes", "scores.0", "scores.1")}
        self.assertEqual((case.givens(), case.compared_outputs()), ({"several_targets"}, list(whole)))
        target = case.target(0, 1)
        self.assertEqual(list(target), ["scores", "boxes"])
        parts = {name: np.array_split(array, case.microbatches)[1] for name, array in whole.items()}
        for found, name in ((target["boxes"], "boxes"), *zip(target["scores"], ("scores.0", "scores.1"), strict=True)):
            np.testing.assert_array_equal(found, parts[name])
        self.assertTrue(all(a is b for a, b in zip(case.flat_targets(target), (target["boxes"], *target["scores"]), strict=True)))
        self.assertEqual(case.nested_targets([1, 2, 3]), {"scores": [2, 3], "boxes": 1})
        for wrong, given in (([1, 2], "list"), ({"boxes": 1}, "1"), ({"boxes": 1, "b": [2, 3]}, "boxes, b"),
                             ({"boxes": 1, "scores": np.ones(2)}, "ndarray")):  # fmt: skip
            with self.assertRaisesRegex(ValueError, f"targets .* expected, {given} given$"):
                case.flat_targets(wrong)
        case.steps[0]["target"] = False
        self.assertIsNone(case.target(0, 1))

    def test_targets_name_the_outputs_that_are_compared(self):
        def change(targets, compared):
            def edit(document):
                document.update({} if targets is None else {"targets": targets})
                document["loss"].update({} if compared is None else {"outputs": compared})

            self.setUp()
            self.change("case.json", edit)
            return self.refusal()

        self.assertIn("case.json: loss.outputs and targets: expected both or neither", change(None, ["0", "1"]))
        self.assertIn("case.json: loss.outputs and targets: expected both or neither", change(["0", "1"], None))
        once = "case.json: loss.outputs: expected outputs of the model, each once in targets, got 0, 1"
        for targets in (["0"], ["0", "1", "1"], ["0", "2"], ["0", "1"]):  # the model has one output
            self.assertIn(once, change(targets, ["0", "1"]))
        self.assertIn("case.json: loss.outputs", change(["0", "0"], ["0", "0"]))

    def test_a_divisor_is_positive(self):
        self.change("case.json", lambda document: document["steps"][0].update(loss_divisor=0))
        self.assertIn("case.json: steps[0].loss_divisor: expected more than 0, got 0", self.refusal())

    def test_the_toy_declines_what_it_does_not_know(self):
        self.assertIsNone(Toy().why_not(load(self.case)))
        self.change("case.json", lambda document: document["loss"].update(class_weights=[1.0]))
        self.assertEqual(Toy().why_not(load(self.case)), "no class_weights")

    def test_every_parameter_has_an_element_type_that_the_backend_takes(self):
        of = lambda *dtypes: type("Some", (Toy,), {"dtypes": dtypes})()
        self.change("program.json", lambda document: document["parameters"][-1].update(dtype="F64"))
        self.assertEqual(load(self.case).dtype, "F32")
        self.assertEqual(self.planned(of("F32"))["why"], "element types beyond those supported: F64")
        self.assertTrue(self.planned(of("F32", "F64"))["supported"])

    def test_replicas_are_declined_by_backends_that_have_one(self):
        def edit(document):
            document["mesh"] = {"pp": 2, "dp": 2, "tp": 1}

        self.change("case.json", edit)
        reason = "2 data-parallel replicas of the pipeline: this backend runs one"
        self.assertEqual(self.planned(Toy()), {"id": "x", "schedule": "1f1b", "supported": False, "why": reason})
        several = type("Several", (Toy,), {"replicas": True})()
        self.assertTrue(self.planned(several)["supported"])
        self.assertIn("replicas", several.describe()["features"])
        self.assertNotIn("replicas", Toy().describe()["features"])
        self.change("case.json", lambda document: [edit(document), document.update(shards_parameters=True)])
        self.assertIn("parameters divided among replicas", self.planned(several)["why"])

    def test_offloads_are_declined_by_backends_that_do_not_know_them(self):
        path = os.path.join(self.case, "schedule.csv")
        with open(path, newline="", encoding="utf-8") as file:
            text = file.read()
        self.assertFalse(load(self.case).offloads)
        with open(path, "w", newline="", encoding="utf-8") as file:
            file.write(text.replace("0F0,", "0F0,0OFFLOAD0,0RELOAD0,", 1))
        self.assertTrue(load(self.case).offloads)
        self.assertEqual(self.planned(Toy())["why"], "OFFLOAD and RELOAD of activations")
        able = type("Able", (Toy,), {"offloads": True})()
        self.assertTrue(self.planned(able)["supported"])
        self.assertIn("offload", able.describe()["features"])
        self.assertNotIn("offload", Toy().describe()["features"])
        self.assertEqual(load(self.case).backward_order(0), load(self.case).forward_order(0))

    def planned(self, backend):
        (answer,) = backend.plan({"cases": [{"id": "x", "schedule": "1f1b", "folder": self.case}]}, "/")
        return answer

    def test_another_version(self):
        self.change("program.json", lambda document: document.update(opset=2))
        self.assertIn("program.json: opset: expected 1, got 2", self.refusal())

    def test_a_repeated_member(self):
        with open(os.path.join(self.case, "case.json"), "wb") as file:
            file.write(b'{"format": "x",' + self.contents["case.json"].lstrip()[1:])
        self.assertIn("case.json: not JSON (an object names a member twice)", self.refusal())

    def test_values_that_are_not_of_json(self):
        begin = self.contents["case.json"].lstrip()[1:]
        for value, said in ((b"NaN", "not JSON (NaN is no number of JSON)"), (b"-Infinity", "not JSON (-Infinity is no number of JSON)"),
                            (b"[" * 100000 + b"]" * 100000, "not JSON that can be read here: its values are nested too deep")):
            with open(os.path.join(self.case, "case.json"), "wb") as file:
                file.write(b'{"format": ' + value + b"," + begin)
            self.assertIn("case.json: " + said, self.refusal())

    def test_corrupt_tensor_files(self):
        whole = self.contents["tensors.safetensors"]
        (length,) = struct.unpack("<Q", whole[:8])
        for name, corrupted in {
            "truncated": whole[:-1],
            "longer": whole + b"x",
            "no header": whole[:4],
            "4 GiB header": struct.pack("<Q", 1 << 32) + whole[8:],
            "header cut": struct.pack("<Q", length - 9) + whole[8:],
            "wrong dtype": whole.replace(b'"F32"', b'"F31"', 1),
            "negative shape": whole.replace(b'"shape":[8', b'"shape":[-', 1),
        }.items():
            with open(os.path.join(self.case, "tensors.safetensors"), "wb") as file:
                file.write(corrupted)
            self.assertIn("tensors.safetensors", self.refusal(), name)

    def test_files_round_trip(self):
        seed = random.randrange(2**32)
        draw = np.random.default_rng(seed)
        tensors = {
            "a": draw.normal(size=(3, 4)).astype(np.float32).T,
            "bits": draw.integers(0, 2**16, 5).astype(np.uint16),
            "big-endian": np.arange(3, dtype=">i4"),
            "scalar": np.array(3),
            "empty": np.empty((0, 2)),
            "é": np.array([True, False]),
        }
        path = os.path.join(self.case, "written.safetensors")
        write_tensors(path, tensors)
        read = read_tensors(path)
        self.assertEqual(read.keys(), tensors.keys())
        for name, array in tensors.items():
            np.testing.assert_array_equal(read[name], array, f"seed {seed}: {name}")
            self.assertEqual(read[name].dtype.itemsize, array.dtype.itemsize)
        self.assertEqual([f for f in os.listdir(self.case) if f.endswith(".tmp")], [])
        with self.assertRaisesRegex(FormatError, "c: expected an array of .*, got complex128"):
            write_tensors(path, {"c": np.ones(1, complex)})

    def test_plumbline_writes_the_same_bytes(self):
        copy = os.path.join(self.case, "copy.safetensors")
        write_tensors(copy, read_tensors(os.path.join(self.case, "tensors.safetensors")))
        with open(copy, "rb") as file:
            self.assertEqual(file.read(), self.contents["tensors.safetensors"])


class Data(unittest.TestCase):
    def test_bf16(self):
        """The next number with 16 bits, by its neighbours: at most half a step away."""
        seed = random.randrange(2**32)
        draw = np.random.default_rng(seed)
        values = np.concatenate(
            [draw.normal(size=1000) * 2.0 ** draw.integers(-120, 120, 1000), [0, -0.0, 1, 1 + 2**-8, 1 + 3 * 2**-8]]
        )
        values = values.astype(np.float32)
        bits = f32_to_bf16(values)
        back = bf16_to_f32(bits).astype(float)
        for step in (-1, 1):
            other = bf16_to_f32((bits.astype(np.int32) + step).clip(0, 0xFF7F).astype(np.uint16)).astype(float)
            self.assertFalse((np.abs(other - values) < np.abs(back - values)).any(), f"seed {seed}")
        self.assertEqual(list(bf16_to_f32(f32_to_bf16(np.float32([1 + 2**-8, 1 + 3 * 2**-8])))), [1, 1 + 2**-6])
        self.assertTrue(np.isnan(bf16_to_f32(f32_to_bf16(np.float32([float("nan")])))).all())
        for shape in (), (1,), (2, 3):
            self.assertEqual(f32_to_bf16(np.ones(shape, np.float32)).shape, shape)
            self.assertEqual(bf16_to_f32(f32_to_bf16(np.ones(shape, np.float32))).shape, shape)
        self.assertEqual(f32_to_bf16(np.float32([[1, 2], [3, 4]]).T).tolist(), [[0x3F80, 0x4040], [0x4000, 0x4080]])

    def test_the_toy_has_the_losses_of_early_stages(self):
        for name in ("exact-added-losses", "exact-local-losses-eval", "exact-read-after-eval"):
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                case, toy = load(export(folder, name, "--expected")), Toy()
                self.assertIsNone(toy.why_not(case))
                found = {k: Stored("F32", x) for k, x in toy.run(case, toy.prepare(case)).items()}
                expected = read_stored(os.path.join(case.folder, "expected.safetensors"))
                expected = {k: x for k, x in expected.items() if parse_key(k).kind in toy.delivers}
                self.assertEqual(differences(expected, found)[:3], [])

    def test_micro_batches_are_consecutive_and_cover_the_batch(self):
        with tempfile.TemporaryDirectory() as folder:
            case = load(export(folder, "uneven-mean"))
            rows = [len(case.target(0, m)) for m in range(case.microbatches)]
            whole = case.batch_target(0)
            self.assertEqual(rows, [len(piece) for piece in np.array_split(whole, case.microbatches)])
            self.assertGreater(len(set(rows)), 1)
            np.testing.assert_array_equal(np.concatenate([case.target(0, m) for m in range(case.microbatches)]), whole)

    def test_replicas_divide_the_micro_batches(self):
        with tempfile.TemporaryDirectory() as folder:
            path = export(folder, "uneven-mean")
            with open(os.path.join(path, "case.json"), encoding="utf-8") as file:
                document = json.load(file)
            document["mesh"] = {"pp": 2, "dp": 2, "tp": 1}
            with open(os.path.join(path, "case.json"), "w", encoding="utf-8") as file:
                json.dump(document, file)
            case = load(path)
            parts = [case.of_replica(number) for number in range(2)]
            self.assertEqual((case.ranks, case.pipeline_ranks, case.replicas), (4, 2, 2))
            half = case.microbatches // 2
            for number, part in enumerate(parts):
                self.assertEqual((part.ranks, part.replicas, part.microbatches), (2, 1, half))
                self.assertEqual(part.first_microbatch, number * half)
                self.assertEqual(part.averages_replicas, document["gradients"]["divide_by"] != 1)
                for m in range(half):
                    of_whole = number * half + m
                    np.testing.assert_array_equal(part.inputs(0, m)[0], case.inputs(0, of_whole)[0])
                    np.testing.assert_array_equal(part.target(0, m), case.target(0, of_whole))
                    self.assertEqual(part.loss_weight(0, m), case.loss_weight(0, of_whole))
                pieces = [case.inputs(0, number * half + m)[0] for m in range(half)]
                np.testing.assert_array_equal(part.batch_inputs(0)[0], np.concatenate(pieces))
            self.assertIs(parts[0].of_replica(0), parts[0])

    def test_masks_of_a_replica(self):
        with tempfile.TemporaryDirectory() as folder:
            case = load(export(folder, "dropout"))
            case.json["mesh"] = {"pp": 2, "dp": 2, "tp": 1}
            part = case.of_replica(1)
            found = [(stage, m) for stage in range(case.stages) for m in range(part.microbatches) if part.masks(0, stage, m)]
            self.assertGreater(len(found), 0)
            for stage, m in found:
                for name, mask in part.masks(0, stage, m).items():
                    np.testing.assert_array_equal(mask, case.masks(0, stage, m + part.microbatches)[name])

    def test_keys(self):
        results = Results()
        results.put(0, "grad", None, None, "a/b", np.ones(2))
        results.put(1, "partial", 2, 3, "c", np.ones(2))
        self.assertEqual(list(results), ["0/grad/-/-/a/b", "1/partial/2/3/c"])
        self.assertEqual(
            [tuple(parse_key(key)) for key in results], [(0, "grad", None, None, "a/b"), (1, "partial", 2, 3, "c")]
        )
        for text in ("0/grad/-/-/", "00/grad/-/-/a", "0/gard/-/-/a", "0/grad/-1/-/a", "0/grad/-/a", "x", "2147483648/grad/-/-/a", "9" * 5000 + "/grad/-/-/a"):
            with self.assertRaises(ValueError, msg=text):
                parse_key(text)
        for wrong, words in (
            ((0, "gard", None, None, "a"), "kind of result 'gard'"),
            ((0, "grad", None, None, "a/b"), "0/grad/-/-/a/b is put twice"),
            ((None, "grad", None, None, "a"), "step of result None"),
            ((0.0, "grad", None, None, "a"), "step of result 0.0"),
            ((True, "grad", None, None, "a"), "step of result True"),
            ((0, "grad", "1", None, "a"), "stage of result '1'"),
            ((0, "grad", None, -1, "a"), "micro-batch of result -1"),
        ):
            with self.assertRaisesRegex(ValueError, re.escape(words)):
                results.put(*wrong, np.ones(2))
        results.put(np.int64(2), "loss", None, np.int32(1), "l", np.ones(2))
        self.assertIn("2/loss/-/1/l", results)


if __name__ == "__main__":
    unittest.main()
