"""The Python loader in plain torch, against the expected results of each case.

    PLUMBLINE_PROGRAM=build/plumbline scripts/peer torch 2.15.0 -- -m unittest discover -s conformance/python/tests -p loader_test.py

Exact results must be equal, and bounded ones within their bounds, with every PyTorch. Same-order ones must be equal bit for
bit if PyTorch has the version that plumbline was built with (PLUMBLINE_TORCH_VERSION).
"""

import glob
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import jax_references
import torch

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))

from plumbline_case import FormatError  # noqa: E402
from plumbline_case.torch import Results, load, read_tensors, separate_gradients, tensors, write_tensors  # noqa: E402
from plumbline_case.torch.expected import differences  # noqa: E402
from plumbline_case.torch.one_process import run_case  # noqa: E402
from plumbline_case.torch.unchanged import unchanged  # noqa: E402

PROGRAM = os.environ["PLUMBLINE_PROGRAM"]


def plumbline(*words):
    return subprocess.run([PROGRAM, *words], check=True, capture_output=True, text=True, timeout=900).stdout


def same_library(about):
    built = about["library"].removeprefix("LibTorch ")
    return torch.__version__.split("+")[0] == built.split("+")[0]


class PutTwice(unittest.TestCase):
    def test_only_the_same_bits_may_be_put_again(self):
        results, key = Results(), (0, "param", None, None, "w")
        first = torch.tensor([0.0, float("nan")])
        for _ in range(2):
            results.put(*key, first)
        for other in (torch.tensor([-0.0, float("nan")]), first[:1], first.double(), first.view(torch.int32)):
            with self.subTest(other), self.assertRaisesRegex(ValueError, "^result 0/param/-/-/w is put twice, with other bits$"):
                results.put(*key, other)
        self.assertEqual(results["0/param/-/-/w"].view(torch.int32).tolist(), first.view(torch.int32).tolist())


class EveryCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        torch.set_num_threads(1)
        cls.folder = tempfile.TemporaryDirectory()
        # Bounds need many float64 runs: one bounded case is enough here.
        wanted = ["exact-*", "uneven-mean", "skip-overflow-bounded"]
        wanted += [c["id"] for c in json.loads(plumbline("list", "--case", "*", "--json")) if c["truth"] == "same-order"]
        plumbline("export", "--case", ",".join(wanted), "--expected", "-o", cls.folder.name)
        cls.cases = sorted(os.path.dirname(path) for path in glob.glob(cls.folder.name + "/*/*/case.json"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_stage_by_stage(self):
        """one_process.py, which follows INTERPRETING.md, gives the results of plumbline's oracle."""
        for folder in self.cases:
            with self.subTest(case=os.path.relpath(folder, self.folder.name)):
                with open(os.path.join(folder, "expected.json"), encoding="utf-8") as file:
                    about = json.load(file)
                if about["compare"] == "bitwise" and not same_library(about):
                    continue
                self.assertEqual(differences(folder, run_case(load(folder)))[:3], [])

    def test_whole_model(self):
        """The whole model as one module, micro-batch by micro-batch under plain autograd: outputs and losses of the
        first train step; and, where the truth is exact, gradients."""
        for folder in self.cases:
            case = load(folder)
            first = next((i for i, step in enumerate(case.steps) if step["kind"] in ("train", "eval")), None)
            trains = case.steps[first]["kind"] == "train"
            if first > 0 or case.json["truth"] != "exact" or case.json["parameter_hooks"]:
                continue
            with self.subTest(case=os.path.relpath(folder, self.folder.name)):
                model = case.model().train(trains)
                results = Results()
                for m in range(case.microbatches):
                    masks = {f"{s}/{name}": x for s in range(case.stages) for name, x in case.masks(first, s, m).items()}
                    outputs = case.flat_outputs(model(*case.inputs(first, m), **masks))
                    for name, output in zip(case.output_names(), outputs, strict=True):
                        if output is not None:
                            results.put(first, "output", None, m, name, output)
                    losses = {name: case.divided(loss, first) for name, loss in model.local_losses.items()}
                    if case.has_loss(first):
                        losses["loss"] = case.loss(outputs, case.target(first, m), first, model.loss_parameters())
                    for name, loss in losses.items():
                        results.put(first, "loss", None, m, name, loss)
                    roots = [loss for loss in losses.values() if trains and loss.requires_grad]
                    if roots:
                        torch.autograd.backward(roots, [torch.full_like(x, case.loss_weight(first, m)) for x in roots])
                        if model.weight_closures:
                            model.weight_closures.take()()
                        separate_gradients(model)
                for name, parameter in model.named_parameters():
                    if parameter.grad is not None:
                        results.put(first, "grad", None, None, name, parameter.grad / case.json["gradients"]["divide_by"])
                expected = read_tensors(os.path.join(folder, "expected.safetensors"))
                for key, tensor in results.items():
                    if key in expected:
                        self.assertTrue(torch.equal(tensor, expected[key]), key)
                self.assertTrue(set(results) & set(expected))

    def test_a_case_follows_its_tensors_to_a_device(self):
        """As docs/your-backend.md moves one to a GPU: "meta" refuses, as a GPU does, to compute with tensors of the CPU. It has
        no bits that could be compared where copies of a parameter are put."""
        for folder in self.cases[::4]:  # a sample
            case = load(folder)
            if case.json["truth"] != "exact":
                continue
            with self.subTest(case=os.path.relpath(folder, self.folder.name)):
                case.tensors = {name: tensor.to("meta") for name, tensor in case.tensors.items()}
                with torch.device("meta"), unittest.mock.patch.object(tensors, "same_bits", return_value=True):
                    results = run_case(case)
                    there = load(folder).tensors  # as GlooBackend loads them on a GPU
                self.assertEqual({tensor.device.type for tensor in there.values()}, {"meta"})
                self.assertEqual({result.device.type for result in results.values()} - {"meta"}, set())

    def test_a_wrong_result_is_found(self):
        """Tests the comparison: one changed element, one missing result, one surplus result."""
        folder = next(f for f in self.cases if "/exact-mlp-sum/" in f)
        expected = read_tensors(os.path.join(folder, "expected.safetensors"))
        seed = random.randrange(2**32)
        key = random.Random(seed).choice(sorted(expected))
        corrupted = {name: tensor.clone() for name, tensor in expected.items()}
        corrupted[key].reshape(-1)[0] += 1
        self.assertEqual([line.split(":")[0] for line in differences(folder, corrupted)], [key], f"seed {seed}")
        del corrupted[key]
        self.assertEqual(differences(folder, corrupted), [f"{key}: missing"])
        self.assertEqual(differences(folder, {**expected, "9/grad/-/-/x": torch.ones(1)}), ["9/grad/-/-/x: not expected"])

    def test_a_dict_is_nested_as_the_case_says(self):
        """Compares keys and values with handwritten ones, and the flat outputs with the order of the program."""
        case = load(next(f for f in self.cases if "/exact-dict/" in f))
        made = case.model()(*case.inputs(0, 0))
        self.assertEqual(list(made), ["hidden", "logits", "absent", "states"])
        self.assertEqual(list(made["states"]), ["sums", "layers"])
        self.assertEqual(case.output_names(), ["logits", "hidden", "absent", "states.layers.0", "states.sums"])
        states = made["states"]
        in_order = [made["logits"], made["hidden"], made["absent"], states["layers"][0], states["sums"]]
        self.assertTrue(all(a is b for a, b in zip(case.flat_outputs(made), in_order, strict=True)))
        self.assertIsNone(made["absent"])
        with self.assertRaises(ValueError):
            case.flat_outputs({**made, "more": made["logits"]})

    def test_a_loss_that_lacks_what_it_needs_is_refused(self):
        """A loss without its divisor or the added losses would be another case."""
        case = load(next(f for f in self.cases if "/exact-user-divides/" in f))
        output = case.model()(*case.inputs(0, 0))
        with self.assertRaisesRegex(ValueError, "divides its losses: loss\\(\\) needs the number of the step"):
            case.loss(output, case.target(0, 0))
        undivided = torch.nn.functional.mse_loss(output, case.target(0, 0), reduction="sum")
        self.assertTrue(torch.equal(case.loss(output, case.target(0, 0), 0), undivided / case.microbatches))
        case = load(next(f for f in self.cases if "/exact-added-losses/" in f))
        outputs = case.model()(*case.inputs(0, 0))
        with self.assertRaisesRegex(ValueError, "reads output 1 in its loss: loss\\(\\) needs all outputs"):
            case.loss(outputs[0], case.target(0, 0))
        case = load(next(f for f in self.cases if "/exact-heads/" in f))
        outputs = case.model()(*case.inputs(0, 0))
        with self.assertRaisesRegex(ValueError, "reads output scores.0 in its loss: loss\\(\\) needs all outputs"):
            case.loss(outputs["boxes"], case.target(0, 0))
        case = load(next(f for f in self.cases if "/exact-loss-parameters/" in f))
        model = case.model()
        output, target = model(*case.inputs(0, 0)), case.target(0, 0)
        with self.assertRaisesRegex(ValueError, "parameters of the loss: loss\\(\\) needs loss.scale, loss.shift"):
            case.loss(output, target)
        scale, shift = model.get_parameter("loss.scale"), model.get_parameter("loss.shift")
        by_hand = ((output * scale + shift - target) ** 2).sum()
        self.assertTrue(torch.equal(case.loss(output, target, parameters=model.loss_parameters()), by_hand))
        apart = dict(model.take_loss().named_parameters())
        self.assertEqual([*apart], ["loss.scale", "loss.shift"])
        self.assertTrue(apart["loss.scale"] is scale and not model.loss_parameters() and model.take_loss() is None)

    def test_losses_that_stay_in_a_stage_are_no_outputs(self):
        case = load(next(f for f in self.cases if "/exact-local-losses/" in f))
        self.assertEqual(case.output_names(), ["0"])
        self.assertIsInstance(case.model()(*case.inputs(0, 0)), torch.Tensor)
        stage = case.stage(0)
        self.assertEqual(stage.local_losses, {})
        stage(*case.inputs(0, 0))
        self.assertEqual(list(stage.local_losses), case.local_losses(0))
        self.assertNotIn("1", stage.output_names())
        first = stage.local_losses["1"]
        stage(*case.inputs(0, 1))
        self.assertIsNot(stage.local_losses["1"], first)

    def test_a_traced_model_is_the_same(self):
        """torch.export traces the whole model."""
        folder = next(f for f in self.cases if "/exact-skip/" in f)
        case = load(folder)
        model = case.model()
        inputs = tuple(case.inputs(0, 0))
        traced = torch.export.export(model, inputs).module()
        self.assertTrue(torch.equal(traced(*inputs), model(*inputs)))

    def test_pipelining_cuts_where_stages_begin(self):
        """torch.distributed.pipelining's tracer cuts at the boundaries that the loader marks."""
        from torch.distributed.pipelining import pipe_split, pipeline

        for name in ("exact-mlp-sum", "exact-tied", "resnet-bn"):
            folder = next(f for f in self.cases if f"/{name}/" in f)
            case = load(folder)
            pipe = pipeline(case.model(border=lambda stage: pipe_split()), mb_args=tuple(case.inputs(0, 0)))
            self.assertEqual(pipe.num_stages, case.stages)


class UsersModule(unittest.TestCase):
    def told(self, change):
        module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
        try:
            with unchanged([module]):
                change(module)
        except ValueError as error:
            return str(error)
        return "unchanged"

    def test_a_change_is_found(self):
        own = torch.nn.Parameter(torch.ones(2, 2))
        for what, change in {
            "module '0', the mode": lambda m: m[0].eval(),
            "module '0', hooks": lambda m: m[0].register_forward_hook(lambda *_: None),
            "module 'more'": lambda m: m.add_module("more", torch.nn.ReLU()),
            "parameter '0.weight', its identity": lambda m: setattr(m[0], "weight", own),
            "parameter '0.weight', whether it requires a gradient": lambda m: m[0].weight.requires_grad_(False),
            "parameter '0.weight', hooks": lambda m: m[0].weight.register_hook(lambda g: g),
            "parameter '0.bias', hooks": lambda m: m[0].bias.register_post_accumulate_grad_hook(lambda _: None),
            "buffer '1.running_mean', its identity": lambda m: setattr(m[1], "running_mean", torch.ones(2)),
        }.items():
            self.assertIn(what, self.told(change))

    def test_training_changes_nothing(self):
        self.assertEqual(self.told(lambda module: module(torch.ones(3, 2)).sum().backward()), "unchanged")


class Strictness(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        plumbline("export", "--case", "exact-mlp-sum", "-o", self.folder.name)
        self.case = os.path.join(self.folder.name, "exact-mlp-sum", "1f1b-4")

    def tearDown(self):
        self.folder.cleanup()

    def refusal(self):
        try:
            load(self.case)
        except FormatError as error:
            self.assertNotIn("\n", str(error))
            return str(error)
        return "accepted"

    def change(self, file, edit):
        path = os.path.join(self.case, file)
        with open(path, encoding="utf-8") as text:
            document = json.load(text)
        edit(document)
        with open(path, "w", encoding="utf-8") as text:
            json.dump(document, text)

    def test_an_operator_outside_the_opset(self):
        self.change("program.json", lambda d: d["programs"][0]["stages"][0]["nodes"][0].update(op="aten::erf"))
        self.assertIn("operators outside opset 1: aten::erf", self.refusal())

    def test_contents_that_torch_rejects(self):
        self.assertEqual(self.refusal(), "accepted")
        corrupted = {
            "TypeError": lambda d: d["programs"][0]["stages"][0]["nodes"][0]["arguments"].update(weight="much"),
            "RuntimeError": lambda d: d["programs"][0]["stages"][1]["nodes"][0]["arguments"].update(
                weight=d["programs"][0]["stages"][1]["nodes"][0]["arguments"]["input"]
            ),
        }
        for kind, edit in corrupted.items():
            plumbline("export", "--case", "exact-mlp-sum", "-o", self.folder.name)
            self.change("program.json", edit)
            with self.subTest(kind), self.assertRaisesRegex(FormatError, rf"^{self.case}: cannot be run: {kind}: .+$"):
                run_case(load(self.case))

    def test_files_round_trip(self):
        seed = random.randrange(2**32)
        torch.manual_seed(seed)
        tensors = {
            "a": torch.randn(3, 4).t(),
            "b": torch.randn(2).to(torch.bfloat16),
            "scalar": torch.tensor(3),
            "empty": torch.empty(0, 2),
            "é": torch.tensor([True, False]),
        }
        path = os.path.join(self.folder.name, "written.safetensors")
        write_tensors(path, tensors)
        read = read_tensors(path)
        self.assertEqual(read.keys(), tensors.keys())
        for name, tensor in tensors.items():
            self.assertTrue(torch.equal(read[name], tensor), f"seed {seed}: {name}")
            self.assertEqual(read[name].dtype, tensor.dtype)
        self.assertEqual([f for f in os.listdir(self.folder.name) if f.endswith(".tmp")], [])

    def test_plumbline_writes_the_same_bytes(self):
        path = os.path.join(self.case, "tensors.safetensors")
        copy = os.path.join(self.folder.name, "copy.safetensors")
        write_tensors(copy, read_tensors(path))
        with open(path, "rb") as one, open(copy, "rb") as other:
            self.assertEqual(one.read(), other.read())


class WindowsAtTheEnd(unittest.TestCase):
    """What INTERPRETING.md says of `ceil_mode` and `output_padding`, as jax_references.py has it, is PyTorch's way."""

    def test_average_pools(self):
        cut = 0
        for size, kernel, stride, padding in itertools.product(range(3, 8), (2, 3), (2, 3, 4), (0, 1)):
            image = torch.rand(1, 1, size, size + 1, dtype=torch.float64)
            shapes = set()
            for up, counted, divisor in itertools.product((False, True), (False, True), (None, 5)):
                with self.subTest(size=size, kernel=kernel, stride=stride, padding=padding, up=up, counted=counted):
                    found = torch.nn.functional.avg_pool2d(image, kernel, stride, padding, up, counted, divisor)
                    told = jax_references.avg_pool2d(image.numpy(), [kernel], [stride], [padding], up, counted, divisor)
                    # Both sides round sums of 2 to 9 terms below 1, 44 in all, and a quotient below 2; the divisor is 5 at
                    # worst, since otherwise it is at least the number of terms.
                    torch.testing.assert_close(found, torch.from_numpy(told), rtol=0, atol=2 * (44 / 5 + 2) * 2.0**-53)
                    shapes.add(found.shape)
            cut += len(shapes) == 2
        self.assertGreater(cut, 10, "windows that only ceil_mode has")

    def test_transposed_convolutions(self):
        for size, stride, padding, dilation, more in itertools.product((2, 3), (1, 2, 3), (0, 1), (1, 2), (0, 1, 2)):
            if more < max(stride, dilation):
                with self.subTest(size=size, stride=stride, padding=padding, dilation=dilation, more=more):
                    image, kernel = (torch.rand(*s, dtype=torch.float64) for s in ((1, 2, size, size + 1), (2, 1, 3, 2)))
                    words = dict(stride=stride, padding=padding, output_padding=more, groups=1, dilation=dilation)
                    found = torch.nn.functional.conv_transpose2d(image, kernel, **words)
                    lists = {name: value if name == "groups" else [value] for name, value in words.items()}
                    told = jax_references.conv_transpose2d(image.numpy(), kernel.numpy(), None, **lists)
                    # At most 2 channels of 3 x 2 terms below 1: 12 products and 11 sums below 12, rounded, on both sides.
                    torch.testing.assert_close(found, torch.from_numpy(told), rtol=0, atol=2 * 12 * 12 * 2.0**-53)
                    side = (size - 1) * stride - 2 * padding + dilation * (3 - 1) + 1 + more  # as the page has it
                    self.assertEqual(found.shape[2], side)


if __name__ == "__main__":
    unittest.main()
