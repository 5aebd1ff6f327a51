"""Tests of plumbline_recorder.py. Without torch all are skipped, with a reason (exit 77).

    scripts/peer torch 2.15.0 -- conformance/python/recorder_test.py
"""

import copy
import glob
import json
import os
import struct
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))

try:
    import torch
except ImportError as error:
    print(f'skipped: {sys.executable} cannot import torch ({error})')
    sys.exit(77)

from torch import nn
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, HERE)
import plumbline_recorder as recorder_module
from plumbline_recorder import Recorder, fill


def read(folder):
    """All tensors of a recording without the stage in their keys, by a reader that shares no code with the writer."""
    kinds = {'F64': torch.float64, 'F32': torch.float32, 'BF16': torch.bfloat16, 'I64': torch.int64, 'BOOL': torch.bool}
    values = {}
    for path in sorted(glob.glob(os.path.join(folder, 'rank*.safetensors'))):
        with open(path, 'rb') as file:
            data = file.read()
        (length,) = struct.unpack('<Q', data[:8])
        for key, entry in json.loads(data[8 : 8 + length]).items():
            begin, end = (8 + length + offset for offset in entry['data_offsets'])
            flat = torch.frombuffer(bytearray(data[begin:end]), dtype=kinds[entry['dtype']]) if end > begin else torch.empty(0)
            step, kind, _, microbatch, name = key.split('/', 4)
            values[f'{step}/{kind}/{microbatch}/{name}'] = flat.reshape(entry['shape'])
    return values


class Layer(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.fc, self.act = nn.Linear(width, width), nn.Tanh()

    def forward(self, x):
        return self.act(self.fc(x))


class Net(nn.Module):
    def __init__(self, again='no'):
        super().__init__()
        self.first, self.second, self.norm = Layer(), Layer(), nn.BatchNorm1d(4)
        self.again = again

    def forward(self, x):
        for layer in (self.first, self.second):
            x = layer(x) if self.again == 'no' else checkpoint(layer, x, use_reentrant=self.again == 'reentrant')
        return self.norm(x)


class RecorderTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = holder.name
        torch.set_num_threads(1)

    def record(self, model, batches, name='run', backward=None, watch=None, **options):
        """One step over these micro-batches, loss = sum of squares."""
        recorder = Recorder(os.path.join(self.folder, name), **{'microbatches': len(batches), **options})
        recorder.watch(model) if watch is None else watch(recorder)
        model.zero_grad()
        if backward is not None:
            backward(recorder)
        else:
            for batch in batches:
                model(batch).square().sum().backward()
        recorder.step_done()
        return read(recorder.folder)

    def assert_same(self, actual, expected):
        self.assertEqual(sorted(actual), sorted(expected))
        for key in expected:
            self.assertTrue(torch.equal(actual[key], expected[key]), key)

    batches = [torch.arange(8.0).reshape(2, 4) / (m + 3) for m in range(3)]

    def test_counters_are_those_of_the_cpp_side(self):
        # reference/models/parts/counter_test.cc has the same table.
        for seed, name, index, bits, unit, below in (
            (0, '', 0, 0x5B21F68FFA77F14C, 0.35598698630425907, 4),
            (1, 'tokens', 0, 0x483C8EBF28E10AD4, 0.2821740357111403, 42),
            (1, 'tokens', 63, 0x36FF620CB9E98850, 0.2148343354291794, 18),
            (7, 'layers.0.qkv.weight', 12345, 0x2996B1F2AF18B4CB, 0.1624556748857653, 7),
            (2**64 - 1, 'größe', 2, 0xC1482F453CB91993, 0.7550077003513461, 43),
        ):
            self.assertEqual(int(recorder_module.counter_bits(index + 1, seed, name)[index]) % 2**64, bits)
            values = torch.empty(index + 1, dtype=torch.float64)
            self.assertEqual(recorder_module.fill_uniform(values, seed, name, 0, 1)[index].item(), unit)
            whole = torch.empty(index + 1, dtype=torch.int64)
            self.assertEqual(recorder_module.fill_integers(whole, seed, name, -50, -1)[index].item(), below - 50)

    def test_fill_does_not_depend_on_the_partition(self):
        whole, part = fill(Net(), 5), Net()
        stage = nn.Sequential(part.second, part.norm)
        fill(stage, 5, rename={'0.': 'second.', '1.': 'norm.'})
        for a, b in ((whole.second, part.second), (whole.norm, part.norm)):
            for p, q in zip(a.parameters(), b.parameters(), strict=True):
                self.assertTrue(torch.equal(p, q))
        self.assertFalse(torch.equal(whole.first.fc.weight, whole.second.fc.weight))

    def test_renamed_stages_have_the_names_of_the_whole_model(self):
        class Whole(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([Layer(), Layer()])

            def forward(self, x):
                return self.layers[1](self.layers[0](x))

        model = fill(Whole(), 1)
        stages = [nn.Sequential(layer) for layer in model.layers]
        prefixes = [{'0.': 'layers.0.'}, {'0.': 'layers.1.'}]
        callables = [lambda name: f'layers.0{name[1:]}', lambda name: f'layers.1{name[1:]}']

        def both(recorder):
            for batch in self.batches:
                stages[1](stages[0](batch)).square().sum().backward()

        for modules in (None, ['layers.*']):
            expected = self.record(fill(Whole(), 1), self.batches, 'whole', modules=modules)
            self.assertIn('0/backward/2/layers.1:in', expected)
            for renames in (prefixes, callables):

                def watch(recorder):
                    for stage, rename in zip(stages, renames, strict=True):
                        recorder.watch(stage, rename=rename)

                model.zero_grad()
                self.assert_same(self.record(nn.Module(), self.batches, 'cut', both, watch, modules=modules), expected)

    def test_values_are_those_that_torch_computes(self):
        model = fill(Net(), 1)
        values = self.record(model, self.batches)
        fresh = fill(Net(), 1)
        x = self.batches[1].clone()
        first = fresh.first(x)
        first.retain_grad()
        second = fresh.second(first)
        fresh.norm(second).square().sum().backward()
        self.assertTrue(torch.equal(values['0/forward/1/first:in'], x))
        self.assertTrue(torch.equal(values['0/forward/1/second:in'], first))
        self.assertTrue(torch.equal(values['0/forward/1/second:out'], second))
        self.assertTrue(torch.equal(values['0/backward/1/first:out'], first.grad))
        self.assertTrue(torch.equal(values['0/backward/1/second:in'], first.grad))
        self.assertNotIn('0/backward/1/first:in', values)  # the batch requires no gradient
        self.assertTrue(torch.equal(values['0/backward/1/first.fc.weight'], fresh.first.fc.weight.grad))
        self.assertTrue(torch.equal(values['0/forward/0/first.fc.weight'], fresh.first.fc.weight))
        self.assertTrue(torch.equal(values['0/grad/-/first.fc.weight'], model.first.fc.weight.grad))
        self.assertTrue(torch.equal(values['0/buffer/-/norm.running_mean'], model.norm.running_mean))
        contributions = [values[f'0/backward/{m}/second.fc.bias'] for m in range(3)]
        self.assertTrue(torch.equal(contributions[0] + contributions[1] + contributions[2], model.second.fc.bias.grad))

    def test_recomputation_is_no_micro_batch_and_changes_nothing(self):
        expected = self.record(fill(Net(), 1), [b.clone().requires_grad_() for b in self.batches], 'plain')
        for again in ('non-reentrant', 'reentrant'):
            actual = self.record(fill(Net(again), 1), [b.clone().requires_grad_() for b in self.batches], again)
            self.assert_same(actual, expected)

    def test_evaluations_are_no_micro_batches(self):
        model = fill(nn.Sequential(Layer(), Layer()), 1)
        expected = self.record(model, self.batches, 'plain')

        def backward(recorder):
            for batch in self.batches:
                with torch.no_grad():
                    model(batch * 2)
                with recorder.paused():
                    model(batch * 3)
                model(batch).square().sum().backward()

        self.assert_same(self.record(model, self.batches, 'evaluated', backward), expected)

    def test_micro_batches_in_any_order(self):
        model = fill(nn.Sequential(Layer(), Layer()), 1)
        expected = self.record(model, self.batches, 'plain')

        def backward(recorder):
            losses = {}
            for m in (2, 0, 1):
                with recorder.microbatch(m):
                    losses[m] = model(self.batches[m]).square().sum()
            for m in (0, 1, 2):  # the hooks know their micro-batch, whatever the order of the backwards
                losses[m].backward()

        self.assert_same(self.record(model, self.batches, 'out-of-order', backward), expected)

    def test_a_micro_batch_of_two_forwards(self):
        """As contrastive losses need: each forward has its own names, and a contribution is of both."""
        views, model = [(b, b.flip(0) + 1) for b in self.batches], fill(nn.Sequential(Layer(), Layer()), 1)

        def backward(recorder):
            for m, (a, b) in enumerate(views):
                with recorder.microbatch(m):
                    (model(a) * model(b)).sum().backward()

        values = self.record(model, views, 'views', backward)
        for m, (a, b) in enumerate(views):
            fresh = fill(nn.Sequential(Layer(), Layer()), 1)
            middle, other = fresh[0](a), fresh[0](b)
            middle.retain_grad()
            other.retain_grad()
            (fresh[1](middle) * fresh[1](other)).sum().backward()
            for name, x, h in (('0', a, middle), ('0#1', b, other)):
                self.assertTrue(torch.equal(values[f'0/forward/{m}/{name}:in'], x))
                self.assertTrue(torch.equal(values[f'0/forward/{m}/{name}:out'], h))
                self.assertTrue(torch.equal(values[f'0/backward/{m}/{name}:out'], h.grad))
            self.assertTrue(torch.equal(values[f'0/backward/{m}/0.fc.weight'], fresh[0].fc.weight.grad))
        moved = self.record(model, views, 'views', backward, perturb=1)
        ups = [moved[f'0/forward/0/{name}:in'] > values[f'0/forward/0/{name}:in'] for name in ('0', '0#1')]
        self.assertFalse(torch.equal(*ups))  # one input's moves say nothing of the other's

    def test_backwards_in_halves(self):
        model = fill(nn.Sequential(Layer(), Layer()), 1)
        batches = [b.clone().requires_grad_() for b in self.batches]
        expected = self.record(model, batches, 'plain')

        def backward(recorder):
            for m, batch in enumerate(batches):
                with recorder.microbatch(m):
                    loss = model(batch).square().sum()
                    torch.autograd.grad(loss, batch, retain_graph=True)
                    for p, gradient in zip(model.parameters(), torch.autograd.grad(loss, list(model.parameters()))):
                        p.grad = gradient if p.grad is None else p.grad + gradient

        self.assert_same(self.record(model, batches, 'halves', backward), expected)

    def test_gradients_are_recorded_without_the_loss_scale(self):
        model = fill(nn.Sequential(Layer(), Layer()), 1)
        expected = self.record(model, self.batches, 'plain')

        def backward(recorder):
            for batch in self.batches:
                (model(batch).square().sum() / 4).backward()

        actual = self.record(model, self.batches, 'scaled', backward, loss_scale=1 / 4)
        gradients = [key for key in expected if '/grad/' in key]
        for key in gradients:
            self.assertTrue(torch.equal(actual.pop(key) * 4, expected.pop(key)))
        self.assert_same(actual, expected)

    def test_contributions_of_joint_backwards_are_left_out(self):
        model = fill(nn.Sequential(Layer(), Layer()), 1)
        expected = self.record(model, self.batches, 'plain')

        def backward(recorder):
            torch.stack([model(batch).square().sum() for batch in self.batches]).sum().backward()

        actual = self.record(model, self.batches, 'at-once', backward)
        gone = {key for key in expected if '/backward/' in key and ':' not in key}
        self.assertEqual(set(expected) - set(actual), gone)
        for key in actual:
            if '/backward/' in key:
                self.assertTrue(torch.equal(actual[key], expected[key]), key)

    def test_a_leaf_of_all_micro_batches_has_gradients_of_each(self):
        """A parameter that modules pass on, as queries and prompts are, and a tensor of the user's."""

        class Prompt(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(4))

            def forward(self):
                return self.weight

        class Decoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(4, 4)

            def forward(self, x, query, shift):
                return self.fc(x * query + shift)

        class Queried(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.prompt, self.decoder, self.query = Layer(), Prompt(), Decoder(), nn.Embedding(2, 4)

            def forward(self, x, shift):
                return self.decoder(self.first(x) * self.prompt(), self.query.weight, shift)

        shift, model = torch.ones(4, requires_grad=True), fill(Queried(), 1)

        def run(recorder):
            for batch in self.batches:
                model(batch, shift).square().sum().backward()

        values = self.record(model, self.batches, 'queried', run)
        for m, batch in enumerate(self.batches):
            fresh, own = fill(Queried(), 1), torch.ones(4, requires_grad=True)
            fresh(batch, own).square().sum().backward()
            leaves = {name: parameter.grad for name, parameter in fresh.named_parameters()} | {'decoder:in.2': own.grad}
            for name, gradient in leaves.items():
                self.assertTrue(torch.equal(values[f'0/backward/{m}/{name}'], gradient), f'{m} {name}')
            self.assertTrue(torch.equal(values[f'0/forward/{m}/prompt:out'], fresh.prompt.weight))
            self.assertFalse({f'0/backward/{m}/prompt:out', f'0/backward/{m}/decoder:in.1'} & set(values))

    def test_calls_and_structures_have_names(self):
        class Inner(nn.Module):
            def forward(self, x, *, scale):
                return {'sum': x + scale, 'parts': (x * 2, [x * 3])}

        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner, self.fc = Inner(), nn.Linear(4, 4)

            def forward(self, x):
                x = self.fc(x)
                x = self.inner(x, scale=torch.ones(4))['parts'][1][0]
                return self.inner(x, scale=torch.ones(4))['sum']

        values = self.record(fill(Outer(), 1), self.batches[:1], 'names')
        x = values['0/forward/0/fc:out']
        for name, expected in {
            'inner:in.0': x, 'inner:in.scale': torch.ones(4), 'inner:out.sum': x + 1, 'inner:out.parts.0': x * 2,
            'inner:out.parts.1.0': x * 3, 'inner#1:in.0': x * 3, 'inner#1:out.sum': x * 3 + 1,
        }.items():  # fmt: skip
            self.assertTrue(torch.equal(values[f'0/forward/0/{name}'], expected), name)

    def test_a_whole_batch_is_cut(self):
        model = fill(nn.Sequential(Layer(), Layer()), 1).double()
        batches = [b.double() for b in self.batches]
        expected = self.record(model, batches, 'plain')
        actual = self.record(model, [torch.cat(batches)], 'whole', microbatches=3, whole_batch=True)
        kept = {key for key in expected if ':' in key or '/grad/' in key or '/forward/' in key}
        self.assertEqual(set(actual), kept)
        for key in kept:
            # The gap is rounding, of sums of at most 6 products below 8 in magnitude.
            self.assertLess((actual[key] - expected[key]).abs().max().item(), 1e-13, key)

    def test_a_whole_batch_whose_first_input_is_no_batch(self):
        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Layer()

            def forward(self, mask, x):
                return self.inner(x) @ mask

        batch, seen = torch.cat(self.batches), []
        for rows in (None, 6):
            recorder = Recorder(self.folder, microbatches=3, whole_batch=True, rows=rows)
            recorder.watch(fill(Masked(), 1))(torch.eye(4), batch).square().sum().backward()
            recorder.step_done()
            seen.append({key: value for key, value in read(self.folder).items() if ':' in key})
        self.assertEqual(seen[0], {})
        self.assertEqual(len(seen[1]), 3 * (6 + 4))  # of inner, fc and act; the batch has no gradient
        for m, part in enumerate(self.batches):
            self.assertTrue(torch.equal(seen[1][f'0/forward/{m}/inner:in'], part))

    def test_perturbing_moves_by_one_unit_in_the_last_place(self):
        model, batch = fill(nn.Sequential(nn.Identity(), nn.Linear(4, 4)), 1), self.batches[0] - 1.3
        plain = self.record(model, [batch])
        moved = self.record(model, [batch], perturb=3)
        self.assertTrue(os.path.isdir(os.path.join(self.folder, 'run', 'perturbed-3')))
        entered, left = moved['0/forward/0/0:in'], moved['0/forward/0/0:out']
        for value, of in ((entered, batch), (left, entered)):
            gap = (value.view(torch.int32) - of.view(torch.int32)).abs()
            self.assertTrue(torch.equal(gap, torch.ones_like(gap)))
        self.assertEqual(set(plain), set(moved))
        zero = self.record(model, [torch.zeros(2, 4)], 'zero', perturb=3)['0/forward/0/0:in']
        self.assertTrue(torch.equal(zero, torch.zeros(2, 4)))  # its neighbours are not rounding errors
        again = self.record(model, [batch], perturb=3)
        other = self.record(model, [batch], perturb=4)
        self.assert_same(again, moved)
        self.assertFalse(torch.equal(other['0/forward/0/0:out'], left))

    def test_perturbed_runs_go_with_the_recording_that_they_were_of(self):
        model, batches = fill(Net(), 1), self.batches[:1]
        for seed in (1, 2):
            self.record(model, batches, perturb=seed)
        run = os.path.join(self.folder, 'run')
        for name in ('perturbed-2/notes.txt', 'perturbed-own/rank0.txt'):
            os.makedirs(os.path.dirname(os.path.join(run, name)), exist_ok=True)
            with open(os.path.join(run, name), 'w') as file:
                file.write('of the user')
        Recorder(run, microbatches=1, rank=1, ranks=2)  # only rank 0 removes them: others may be later
        self.assertTrue(os.path.exists(os.path.join(run, 'perturbed-1', 'rank0.json')))
        self.record(model, batches)
        self.assertEqual({name for name in os.listdir(run) if name.startswith('perturbed-')}, {'perturbed-2', 'perturbed-own'})
        self.assertEqual(os.listdir(os.path.join(run, 'perturbed-2')), ['notes.txt'])
        self.assertEqual(os.listdir(os.path.join(run, 'perturbed-own')), ['rank0.txt'])
        self.record(model, batches, perturb=1)
        self.record(model, batches, perturb=3)
        self.assertTrue(os.path.exists(os.path.join(run, 'perturbed-1', 'rank0.json')))  # perturbed runs remove no others
        self.assertTrue(os.path.exists(os.path.join(run, 'rank0.json')))

    def test_a_tensor_of_2_gib_is_written_whole(self):
        """Its bytes as they go to write(): they are never touched but for the last, and take no memory."""
        large = torch.empty((1 << 31) + 1, dtype=torch.uint8)
        large[-1] = 7
        data = recorder_module._bytes_of(large)
        self.assertEqual((len(data), data[-1]), ((1 << 31) + 1, b'\x07'))
        path = os.path.join(self.folder, 'rank0.small.safetensors')
        small = {'0/loss/-/0/loss': torch.arange(3.0), '0/loss/-/1/loss': torch.empty(0)}
        recorder_module.write_tensors(path, small)
        self.assert_same(read(self.folder), {'0/loss/0/loss': torch.arange(3.0), '0/loss/1/loss': torch.empty(0)})

    def test_sparse_gradients_are_recorded_with_their_zeros(self):
        """Whole numbers, so that the sums are exact in any order."""
        tokens, values, embeddings = [torch.tensor([[1, 1], [5, m]]) for m in range(3)], [], []
        for sparse in (False, True):
            model = nn.Sequential(nn.Embedding(6, 4, sparse=sparse))
            with torch.no_grad():
                model[0].weight.copy_(torch.arange(24.0).reshape(6, 4))
            values.append(self.record(model, tokens, f'sparse-{sparse}'))
            embeddings.append(model[0].weight)
        self.assertEqual([weight.grad.layout for weight in embeddings], [torch.strided, torch.sparse_coo])
        self.assert_same(values[1], values[0])
        self.assertEqual(values[1]['0/grad/-/0.weight'].shape, (6, 4))

    def test_perturbing_moves_sparse_gradients(self):
        moved, layouts = [], []
        for sparse in (False, True):
            model = fill(nn.Sequential(nn.Embedding(6, 4, sparse=sparse), nn.Tanh()), 1)
            moved.append(self.record(model, [torch.tensor([[1, 2], [5, 0]])], f'sparse-{sparse}', perturb=3))
            layouts.append(model[0].weight.grad.layout)
        self.assertEqual(layouts, [torch.strided, torch.sparse_coo])
        self.assert_same(moved[1], moved[0])

    def test_conjugates_that_torch_has_not_computed_yet_are_recorded(self):
        class Conjugate(nn.Module):
            def forward(self, x):
                z = torch.complex(x, x + 1).conj()
                return z, z.imag

        model = nn.Sequential(Conjugate())
        x = self.batches[0].clone().requires_grad_()
        recorder = Recorder(os.path.join(self.folder, 'run'), microbatches=1)
        z, imaginary = recorder.watch(model)(x)
        self.assertTrue(z.is_conj() and imaginary.is_neg())
        (z * z.conj()).real.sum().backward()
        recorder.step_done()
        values = read(recorder.folder)
        self.assertTrue(torch.equal(values['0/forward/0/0:out.0'], torch.stack((x, -(x + 1)), -1)))
        self.assertTrue(torch.equal(values['0/forward/0/0:out.1'], -(x + 1)))
        self.assertTrue(torch.equal(values['0/backward/0/0:out.0'], torch.stack((2 * x, -2 * (x + 1)), -1)))

    def test_a_tensor_whose_values_are_elsewhere_is_refused(self):
        """As a DTensor is, whose own memory is none."""

        class Wrapped(torch.Tensor):
            @staticmethod
            def __new__(cls, values):
                return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=values.dtype)

            def __init__(self, values):
                self.values = values

            @classmethod
            def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
                return Wrapped(function(*(x.values if isinstance(x, Wrapped) else x for x in args), **(kwargs or {})))

        model = fill(Net(), 1)
        model.norm.running_mean = Wrapped(torch.zeros(4))
        recorder = Recorder(self.folder, microbatches=1)
        recorder.watch(model.eval())
        with self.assertRaisesRegex(ValueError, r'^plumbline_recorder: `norm.running_mean` is a Wrapped, whose values [^\n]*$'):
            recorder.step_done()

    def test_patterns_choose_modules(self):
        values = self.record(fill(Net(), 1), self.batches[:1], modules=['first', '*.fc'])
        watched = {key.split('/')[-1].split(':')[0] for key in values if ':' in key}
        self.assertEqual(watched, {'first', 'first.fc', 'second.fc'})
        self.assertIn('0/grad/-/norm.weight', values)

    def test_too_many_forwards_are_an_error(self):
        with self.assertRaisesRegex(ValueError, r'forward 2 of Net in step 0, but microbatches=1'):
            self.record(fill(Net(), 1), self.batches[:2], microbatches=1)

    def test_one_module_in_two_watched_ones(self):
        """Two stages of one rank that share an embedding, for one."""

        def of_microbatch(stages, batch):
            out = stages[0](batch)
            entered = out.detach().requires_grad_()
            return out, entered, stages[1](entered).square().sum()

        shared = fill(Layer(), 1)
        stages = [nn.Sequential(shared, fill(Layer(), 2)), nn.Sequential(fill(Layer(), 3), shared)]
        fresh, recorder = copy.deepcopy(stages), Recorder(self.folder, microbatches=3)
        recorder.watch(stages[0], 0, {'0.': 'a.'})
        recorder.watch(stages[1], 2, {'1.': 'b.'})
        for batch in self.batches:
            out, entered, loss = of_microbatch(stages, batch)
            loss.backward()
            out.backward(entered.grad)
        recorder.step_done()
        values = read(self.folder)
        for m, batch in enumerate(self.batches):
            out, entered, loss = of_microbatch(fresh, batch)
            bias = fresh[0][0].fc.bias
            of_b, back = torch.autograd.grad(loss, (bias, entered))
            (of_a,) = torch.autograd.grad(out, bias, back)
            for kind, name, expected in (('forward', 'a:in', batch), ('forward', 'b:in', fresh[1][0](entered)),
                                         ('backward', 'a.fc.bias', of_a), ('backward', 'b.fc.bias', of_b)):  # fmt: skip
                self.assertTrue(torch.equal(values[f'0/{kind}/{m}/{name}'], expected), f'{m} {name}')
        self.assertFalse([key for key in values if '#' in key])
        with open(os.path.join(self.folder, 'rank0.json')) as file:
            self.assertEqual(json.load(file)['tied'], {'b.fc.weight': 'a.fc.weight', 'b.fc.bias': 'a.fc.bias'})

    def test_only_the_first_steps_are_recorded(self):
        recorder = Recorder(self.folder, microbatches=1, steps=2)
        model = recorder.watch(fill(Net(), 1))
        for _ in range(4):
            model(self.batches[0]).sum().backward()
            recorder.step_done()
        self.assertEqual({key.split('/')[0] for key in read(self.folder)}, {'0', '1'})


if __name__ == '__main__':
    unittest.main()
