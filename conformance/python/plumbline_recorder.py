"""Records the values of a training script, so that `plumbline check RUN --against ONE_RANK_RUN` can compare a pipelined run
with the same script's run on one rank and name the first module, micro-batch and direction that differ.

Needs torch alone; copy this one file beside your script. In the script (docs/recorder.md has a whole one):

    recorder = Recorder('recording', microbatches=4)    # every rank: the same folder
    recorder.watch(stage)                               # a module, or a stage of torch.distributed.pipelining
    ... forward and backward of one step ...
    recorder.losses(losses)                             # on the rank that has them: one for each micro-batch
    recorder.step_done()                                # after the backward, before the optimizer

The recorded values, all by name and never by rank:
  forward   inputs and outputs of each watched module, for each micro-batch; its parameters, once a step
  loss      of each micro-batch
  backward  the gradients of those values, and the contribution of each micro-batch to a parameter's gradient
  grad      gradients of the parameters at step_done()
  buffer    buffers at step_done()
as FOLDER/rank<R>.step<S>.safetensors, keys `step/kind/stage/microbatch/name` (`-`: does not apply), and FOLDER/rank<R>.json,
which lists the files, and the names in the order of the forward. Both are written completely, then renamed into place.

Names: `layers.3:in`, `layers.3:out`; `layers.3#1:in` at the module's second call for a micro-batch; `layers.3:out.hidden`,
`:in.0`, `:in.mask` for several tensors; a parameter or buffer by its qualified name.
"""

import ctypes
import fnmatch
import json
import math
import os
import re
import threading
from contextlib import contextmanager, suppress

import torch

SCHEMA = 'plumbline-recorder/1'


# --- numbers from (seed, name, index): the same on every rank, machine and device, whatever the partition -------------
# SplitMix64 over a counter, its key made of the seed and the FNV-1a hash of the name, as in reference/models/parts/counter.h.

MASK = (1 << 64) - 1


def splitmix64(state, index):
    """Output `index` of the SplitMix64 generator with the seed `state`."""
    z = (state + (index + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def hash_name(name):
    """64-bit FNV-1a of the name's UTF-8."""
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def stream_key(seed, name):
    return splitmix64(seed, 0) ^ hash_name(name)


def _signed(value):
    return value - (1 << 64) if value >> 63 else value


def _shifted(z, count):
    return (z >> count) & ((1 << (64 - count)) - 1)  # torch shifts in the sign bit; a counter needs zeros


def counter_bits(count, seed, name):
    """The first `count` outputs of the stream of (seed, name), 64 bits each, as int64."""
    z = torch.arange(1, count + 1, dtype=torch.int64) * _signed(0x9E3779B97F4A7C15) + _signed(stream_key(seed, name))
    z = (z ^ _shifted(z, 30)) * _signed(0xBF58476D1CE4E5B9)
    z = (z ^ _shifted(z, 27)) * _signed(0x94D049BB133111EB)
    return z ^ _shifted(z, 31)


def fill_uniform(tensor, seed, name, low, high):
    """Uniform in [low, high), in place; element i (row-major) depends on (seed, name, i) alone."""
    unit = _shifted(counter_bits(tensor.numel(), seed, name), 11).to(torch.float64) * 2.0**-53
    with torch.no_grad():
        tensor.copy_((low + (high - low) * unit).view(tensor.shape))
    return tensor


def fill_integers(tensor, seed, name, low, high):
    """Whole numbers, uniform in [low, high], both included, in place."""
    bits, count = counter_bits(tensor.numel(), seed, name), high - low + 1
    drawn = (_shifted(bits, 1) % count * 2 + (bits & 1)) % count  # the remainder of the bits as an unsigned number
    with torch.no_grad():
        tensor.copy_((low + drawn).view(tensor.shape))
    return tensor


def fill(model, seed, rename=None):
    """Sets every parameter from (seed, its qualified name, index), so that stages start with the whole model's values,
    without a checkpoint. Matrices and larger: uniform within 1/sqrt(inputs of a row); vectors: within 0.1 of 1 if the
    name ends in `weight` (the scale of a norm), within 0.1 of 0 elsewhere. `rename` as in Recorder.watch()."""
    for local, parameter in model.named_parameters():
        name = _renamed(rename, local)
        if parameter.dim() > 1:
            reach = 1 / math.sqrt(max(1, parameter[0].numel()))
            fill_uniform(parameter, seed, name, -reach, reach)
        else:
            middle = 1.0 if name.endswith('weight') else 0.0
            fill_uniform(parameter, seed, name, middle - 0.1, middle + 0.1)
    return model


def _renamed(rename, name):
    """`rename` is None, a callable from name to name, or {prefix: replacement}, of which the longest prefix applies."""
    if rename is None:
        return name
    if callable(rename):
        return rename(name)
    fitting = [prefix for prefix in rename if name.startswith(prefix)]
    if not fitting:
        return name
    longest = max(fitting, key=len)
    return rename[longest] + name[len(longest) :]


# --- files --------------------------------------------------------------------------------------------------------------

DTYPES = {
    torch.float64: 'F64', torch.float32: 'F32', torch.float16: 'F16', torch.bfloat16: 'BF16', torch.int64: 'I64',
    torch.int32: 'I32', torch.int16: 'I16', torch.int8: 'I8', torch.uint8: 'U8', torch.bool: 'BOOL',
}  # fmt: skip


def _dense(tensor, name):
    """The tensor without a graph, and if it is sparse, with its zeros. Raises ValueError if the values are not in its memory."""
    tensor = tensor.detach()
    if type(tensor) in (torch.Tensor, torch.nn.Parameter):
        return tensor if tensor.layout == torch.strided else tensor.to_dense()
    if tensor.layout != torch.strided or (tensor.numel() and tensor.data_ptr() == 0):
        raise ValueError(f'plumbline_recorder: `{name}` is a {type(tensor).__name__}, whose values are not in its own memory; expected a plain torch.Tensor')
    return tensor


def _host(tensor, name):
    """A copy in host memory, in a dtype that safetensors has; no value is rounded. `name` is for an error."""
    tensor = _dense(tensor, name)
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    if tensor.dtype not in DTYPES:
        tensor = tensor.to(torch.float32 if tensor.dtype.is_floating_point else torch.int64)
    return tensor.to('cpu', copy=True).contiguous()


WRITTEN = re.compile(r'rank\d+\.(json|step\d+\.safetensors)(\.part)?')


def _remove_perturbed(folder):
    """Removes the perturbed runs of an earlier recording, which do not bound the rounding of this one. Files that no
    recorder wrote stay, and their folders."""
    for name in os.listdir(folder):
        perturbed = os.path.join(folder, name)
        if not name.startswith('perturbed-') or os.path.islink(perturbed) or not os.path.isdir(perturbed):
            continue
        with suppress(FileNotFoundError):  # a run that is being recorded renames its files
            for file in filter(WRITTEN.fullmatch, os.listdir(perturbed)):
                os.remove(os.path.join(perturbed, file))
        with suppress(OSError):  # not empty
            os.rmdir(perturbed)


def _bytes_of(tensor):
    """Those of a contiguous host tensor, without a copy, of any size (ctypes.string_at takes less than 2 GiB)."""
    size = tensor.numel() * tensor.element_size()
    return (ctypes.c_char * size).from_address(tensor.data_ptr()) if size else b''


def _write(path, chunks):
    temporary = f'{path}.part'
    with open(temporary, 'wb') as file:
        for chunk in chunks:
            file.write(chunk)
    os.replace(temporary, path)


def write_tensors(path, tensors):
    """A safetensors file of host tensors."""
    header, end = {}, 0
    for name in sorted(tensors):
        size = tensors[name].numel() * tensors[name].element_size()
        header[name] = {'dtype': DTYPES[tensors[name].dtype], 'shape': list(tensors[name].shape), 'data_offsets': [end, end + size]}
        end += size
    text = json.dumps(header, separators=(',', ':'), ensure_ascii=False).encode()
    text += b' ' * (-len(text) % 8)
    _write(path, [len(text).to_bytes(8, 'little'), text, *(_bytes_of(tensors[name]) for name in sorted(tensors))])


# --- the recorder -------------------------------------------------------------------------------------------------------


def _tensors_in(value, path=''):
    """(path, tensor) of every tensor in nested tuples, lists and dicts; a lone tensor has the path ''."""
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from _tensors_in(item, f'{path}.{index}')
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _tensors_in(item, f'{path}.{key}')


def _mapped(value, change):
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, '_fields'):
        return type(value)(*(_mapped(item, change) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(item, change) for item in value)
    if isinstance(value, dict):
        return type(value)((key, _mapped(item, change)) for key, item in value.items())
    return value


def _inputs(args, kwargs):
    return args[0] if len(args) == 1 and not kwargs else {**dict(enumerate(args)), **kwargs}


def _graph_task():
    """The number of the backward that this thread executes; -1: none. A module that runs in a backward is recomputed."""
    return torch._C._current_graph_task_id()


def _segments_match(name, pattern):
    parts, wanted = name.split('.'), pattern.split('.')
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


class _Root:
    """A watched module: a stage, or the whole model."""

    def __init__(self, module, stage, rename, passes_microbatches):
        self.module, self.stage, self.rename = module, stage, rename
        self.passes_microbatches = passes_microbatches  # whether the caller passes them; otherwise forwards are counted
        parameters = module.named_parameters(remove_duplicate=False)
        self.parameters = {_renamed(rename, local): parameter for local, parameter in parameters}
        self.buffers = {_renamed(rename, local): place for local, *place in self._owners(module)}
        self.new_step()

    @staticmethod
    def _owners(module):
        for prefix, owner in module.named_modules():
            for attribute in owner._buffers:
                yield (f'{prefix}.{attribute}' if prefix else attribute), owner, attribute

    def new_step(self):
        self.forwards = 0
        self.calls = {}  # micro-batch -> module -> number of calls
        self.not_hooked = {}  # micro-batch -> names whose tensors had no graph in the forward (reentrant checkpoints)
        self.parameters_seen = set()


class Recorder:
    """One for each rank of a run.

    folder        the same on all ranks; a new run replaces a rank's earlier files in it, and without `perturb` rank 0
                  removes the perturbed runs: record them after it
    microbatches  the number in each step
    steps         the number of recorded steps; later steps are ignored
    modules       patterns of qualified names ('layers.*', 'head'; * stays within one dot); None: every module
    whole_batch   a forward runs the whole batch: values are cut into micro-batches along dimension 0
    rows          the batch's length in it; None: that of the forward's first input with dimensions; others are not cut
    loss_scale    the script's factor on a micro-batch's loss before its backward that the other run lacks (1/M,
                  or with whole_batch and a mean loss 1/M as well): recorded backward values are divided by it
    perturb       a number: moves every output of a watched module, forward and backward, by one unit in the last place,
                  up or down as a function of (number, name, index), and writes to FOLDER/perturbed-<number>: from
                  several such runs `plumbline check` derives rounding bounds
    inputs        records the inputs of modules too, not only their outputs (twice the bytes, and a more precise location)
    """

    def __init__(self, folder, microbatches, steps=1, modules=None, whole_batch=False, loss_scale=1.0, perturb=None,
                 inputs=True, rank=None, ranks=None, rows=None):  # fmt: skip
        initialized = torch.distributed.is_available() and torch.distributed.is_initialized()
        default_rank = torch.distributed.get_rank() if initialized else int(os.environ.get('RANK', 0))
        default_ranks = torch.distributed.get_world_size() if initialized else int(os.environ.get('WORLD_SIZE', 1))
        self.rank = default_rank if rank is None else rank
        self.ranks = default_ranks if ranks is None else ranks
        self.folder = os.path.join(folder, f'perturbed-{perturb}') if perturb is not None else os.fspath(folder)
        self.microbatches, self.steps, self.patterns, self.rows = microbatches, steps, modules, rows
        self.whole_batch, self.loss_scale, self.perturb, self.inputs = whole_batch, loss_scale, perturb, inputs
        self.step, self.roots, self.order, self.files = 0, [], {}, []
        self._values, self._contributions = {}, {}
        self._places, self._hooked = {}, set()  # id of a parameter -> (watched module, name) of each place that has it; ids
        self._tasks = {}  # backward -> (watched module, micro-batch) of its gradients so far, the latest last
        self._running, self._microbatch, self._paused = None, None, False
        self._frame = threading.local()  # .here: (root, micro-batch, stack of calls) while a watched module runs
        os.makedirs(self.folder, exist_ok=True)
        for name in os.listdir(self.folder):
            if name.startswith(f'rank{self.rank}.'):
                os.remove(os.path.join(self.folder, name))
        if self.perturb is None and self.rank == 0:
            _remove_perturbed(self.folder)

    # The interface for scripts.

    def watch(self, stage, number=None, rename=None):
        """Watches a module, or a stage of torch.distributed.pipelining (which passes the micro-batch, in any order of
        its schedule; a plain module's forwards are counted). `rename` maps the module's qualified names to those of
        the whole model: a callable, or {prefix: replacement}. Returns `stage`."""
        is_stage = hasattr(stage, 'forward_one_chunk') and hasattr(stage, 'submod')
        module = stage.submod if is_stage else stage
        number = stage.stage_index if is_stage and number is None else number
        root = _Root(module, number, rename, passes_microbatches=is_stage)
        if is_stage:
            for method in ('forward_one_chunk', 'backward_one_chunk', 'backward_weight_one_chunk'):
                if hasattr(stage, method):
                    setattr(stage, method, self._with_microbatch(root, getattr(stage, method)))
        self.roots.append(root)
        module.register_forward_pre_hook(lambda m, args, kwargs: self._enter(root, args, kwargs), with_kwargs=True, prepend=True)
        module.register_forward_hook(lambda m, args, out: self._leave(root), always_call=True)
        owners = {id(p): None for p in root.parameters.values()}
        for local, child in list(module.named_modules())[1:]:
            name = _renamed(rename, local if callable(rename) else f'{local}.').removesuffix('.')  # prefixes mostly end in a dot
            if not name or not self._wanted(name):
                continue
            owners.update((id(p), child) for p in child.parameters())  # the innermost watched module comes last
            child.register_forward_pre_hook(self._before(root, name), with_kwargs=True, prepend=True)
            child.register_forward_hook(self._after(root, name), always_call=True)
        root.owned = {}
        for name, parameter in root.parameters.items():
            root.owned.setdefault(owners[id(parameter)], []).append(name)
            self._places.setdefault(id(parameter), []).append((root, name))
        return stage

    @contextmanager
    def microbatch(self, number):
        """A context whose forwards and backwards belong to this micro-batch: for runtimes that run them out of order."""
        before, self._running, self._microbatch = (self._running, self._microbatch), None, number
        try:
            yield
        finally:
            self._running, self._microbatch = before

    @contextmanager
    def paused(self):
        """A context without recording, for an evaluation with gradients enabled (torch.no_grad identifies others)."""
        before, self._paused = self._paused, True
        try:
            yield
        finally:
            self._paused = before

    def losses(self, values):
        """The losses of this step: one for each micro-batch, in their order; or a single tensor for the whole step."""
        if not self._recording():
            return
        if isinstance(values, torch.Tensor):
            self._values[f'{self.step}/loss/-/-/loss'] = _host(values, 'loss')
            return
        for number, value in enumerate(values):
            self._values[f'{self.step}/loss/-/{number}/loss'] = _host(torch.as_tensor(value), 'loss')

    def step_done(self):
        """Ends a step: writes the present gradients and buffers, and all recorded values, to disk."""
        if not self._recording():
            return
        for root in self.roots:
            for name, parameter in root.parameters.items():
                self.order.setdefault(name)
                if parameter.grad is not None:
                    self._values[self._key('grad', root, None, name)] = _host(parameter.grad, name)
            for name, (owner, attribute) in root.buffers.items():
                if owner._buffers.get(attribute) is not None:
                    self._values[self._key('buffer', root, None, name)] = _host(owner._buffers[attribute], name)
        self._keep_contributions()
        file = f'rank{self.rank}.step{self.step}.safetensors'
        write_tensors(os.path.join(self.folder, file), self._values)
        self.files.append(file)
        index = {
            'schema': SCHEMA, 'rank': self.rank, 'ranks': self.ranks, 'microbatches': self.microbatches,
            'whole_batch': self.whole_batch, 'loss_scale': self.loss_scale, 'perturb': self.perturb, 'torch': torch.__version__, 'files': self.files,
            'parameters': sorted({name for root in self.roots for name in root.parameters}), 'order': list(self.order),
            'tied': {name: places[0][1] for places in self._places.values() for _, name in places if name != places[0][1]},
        }  # fmt: skip
        _write(os.path.join(self.folder, f'rank{self.rank}.json'), [json.dumps(index, indent=1).encode()])
        self.step += 1
        self._values, self._contributions, self._tasks = {}, {}, {}
        for root in self.roots:
            root.new_step()

    # The identity of a forward.

    def _recording(self):
        return self.step < self.steps

    def _wanted(self, name):
        return self.patterns is None or any(_segments_match(name, pattern) for pattern in self.patterns)

    def _with_microbatch(self, root, method):
        def wrapped(*args, **kwargs):
            number = args[0] if args else kwargs.get('fwd_chunk_id', kwargs.get('bwd_chunk_id'))
            with self.microbatch(number):
                self._running = root
                return method(*args, **kwargs)

        return wrapped

    def _enter(self, root, args, kwargs):
        if not self._recording() or self._paused or not torch.is_grad_enabled() or _graph_task() != -1:
            return None
        tensors = [tensor for _, tensor in _tensors_in((args, kwargs))]
        if any(tensor.is_meta for tensor in tensors):
            return None  # a runtime inferring shapes
        if self._microbatch is not None:
            number = self._microbatch
        elif root.passes_microbatches:
            return None  # likewise: not one of the step's forwards
        else:
            number = root.forwards
        if number >= (1 if self.whole_batch else self.microbatches):
            wanted = 'whole_batch=True means one' if self.whole_batch else f'microbatches={self.microbatches}'
            raise ValueError(f'plumbline_recorder: forward {number + 1} of {root.module.__class__.__name__} in step {self.step}, but {wanted} (is step_done() called?)')
        root.forwards += 1
        for parameter in root.parameters.values():
            if parameter.requires_grad and id(parameter) not in self._hooked:
                self._hooked.add(id(parameter))
                parameter.register_hook(self._contribution(self._places[id(parameter)]))
        self._rows = self.rows or next((tensor.size(0) for tensor in tensors if tensor.dim()), 0)
        root.calls.setdefault(number, {})  # not new if the module runs again for a micro-batch: another view of the data
        root.not_hooked.setdefault(number, set())
        self._frame.here = (root, number, [])
        self._see_parameters(root, number, None)
        if self.perturb is None:
            return None
        moved = self._mover(f'{self.step}/{number}/inputs/{root.forwards}')
        return _mapped(args, moved), _mapped(kwargs, moved)

    def _leave(self, root):
        if _graph_task() == -1:
            self._frame.here = None

    # Hooks around a module's forward.

    def _before(self, root, name):
        def hook(module, args, kwargs):
            here = getattr(self._frame, 'here', None)
            if _graph_task() != -1:
                if self.inputs:
                    self._recomputed(root, f'{name}:in', _inputs(args, kwargs), name)
            elif here and here[0] is root:  # not another watched module that contains this one too
                _, number, stack = here
                call = root.calls[number].get(name, 0)
                root.calls[number][name] = call + 1
                event = f'{name}#{call}' if call else name
                stack.append(event)
                if self.inputs:
                    self._see(root, number, f'{event}:in', _inputs(args, kwargs))
                self._see_parameters(root, number, module)

        return hook

    def _after(self, root, name):
        def hook(module, args, out):
            here = getattr(self._frame, 'here', None)
            if _graph_task() != -1:
                self._recomputed(root, f'{name}:out', out, name)
            elif here and here[0] is root and here[2]:
                _, number, stack = here
                event = stack.pop()
                if self.perturb is not None:
                    out = _mapped(out, self._mover(f'{self.step}/{number}/{event}'))
                self._see(root, number, f'{event}:out', out)
                return out
            return None

        return hook

    def _see(self, root, number, event, value):
        for path, tensor in _tensors_in(value):
            name = event + path
            if self._cuts(tensor):
                self.order.setdefault(name)
                self._put('forward', root, number, name, tensor)
            if isinstance(tensor, torch.nn.Parameter):
                continue  # its uses share one gradient, of which _contribution() keeps what each micro-batch adds
            if tensor.requires_grad:
                tensor.register_hook(self._gradient(root, number, name, tensor.is_leaf))
            elif tensor.is_floating_point() and not torch.is_grad_enabled():
                root.not_hooked[number].add(name)

    def _see_parameters(self, root, number, module):
        for name in root.owned.get(module, ()):
            self.order.setdefault(name)
            if name not in root.parameters_seen:
                root.parameters_seen.add(name)
                self._values[self._key('forward', root, 0, name)] = _host(root.parameters[name], name)

    def _recomputed(self, root, event, value, module):
        """A module is recomputed in a backward. If its first forward built no graph (a reentrant checkpoint), gradients
        reach the tensors of this one; the micro-batch is that of the latest gradient."""
        number = self._now()[1]
        if number is None or root.calls.get(number, {}).get(module) != 1:
            return
        for path, tensor in _tensors_in(value):
            if tensor.requires_grad and event + path in root.not_hooked[number]:
                root.not_hooked[number].discard(event + path)
                tensor.register_hook(self._gradient(root, number, event + path, tensor.is_leaf))

    # Gradients.

    def _now(self):
        """The watched module and the micro-batch whose backward this thread executes, as far as known."""
        seen = self._tasks.get(_graph_task())
        root, number = seen[-1] if seen else (None, None)
        return self._running or root, number if self._microbatch is None else self._microbatch

    def _gradient(self, root, number, name, is_leaf):
        step = self.step

        def hook(gradient):
            if step != self.step:
                return None  # a graph of an earlier step, kept alive
            if is_leaf and self._now()[1] not in (number, None):
                return None  # a tensor that other micro-batches use too: its hooks are called in each one's backward
            seen = self._tasks.setdefault(_graph_task(), [])
            if not seen or seen[-1] != (root, number):
                seen.append((root, number))
            if self._cuts(gradient):
                # A weight half may pass here again with the same gradient; a different gradient is added.
                self._put('backward', root, number, name, gradient, again='unless equal')
            return None if self.perturb is None else self._mover(f'{step}/{number}/{name}/gradient')(gradient)

        return hook

    def _contribution(self, places):
        """Of a parameter that is in these places: of several in one watched module, the first stands for all."""

        def hook(gradient):
            if not self._recording() or self._paused:
                return None
            task, now, name = None if self._microbatch is not None else _graph_task(), self._now(), places[0][1]
            value, key = _host(gradient, name), (task, now, id(places))
            self._contributions[key] = places, self._contributions[key][1] + value if key in self._contributions else value
            return None if self.perturb is None else self._mover(f'{self.step}/{now[1]}/{name}/gradient')(gradient)

        return hook

    def _keep_contributions(self):
        """Only for backwards of a single micro-batch: otherwise the contributions cannot be attributed."""
        for (task, now, _), (places, value) in self._contributions.items():
            seen = self._tasks.get(task, ())
            now, number = now if now[1] is not None or not seen else seen[0]  # a use behind all watched modules comes first
            root, name = next((place for place in places if place[0] is now), places[0])
            alone = task is None or len({of for _, of in seen}) == 1
            if number is not None and alone and not self.whole_batch:
                self._put('backward', root, number, name, value, again='add')

    # Storage.

    def _key(self, kind, root, number, name):
        dash = lambda value: '-' if value is None else value
        return f'{self.step}/{kind}/{dash(root.stage)}/{dash(number)}/{name}'

    def _cuts(self, tensor):
        return not self.whole_batch or (tensor.dim() > 0 and tensor.size(0) == self._rows)

    def _put(self, kind, root, number, name, tensor, again=''):
        if kind == 'backward' and self.loss_scale != 1.0:
            tensor = tensor / self.loss_scale
        parts = torch.tensor_split(tensor, self.microbatches) if self.whole_batch else [tensor]
        for offset, part in enumerate(parts):
            key, value = self._key(kind, root, number + offset, name), _host(part, name)
            before = self._values.get(key)
            if before is not None and again:
                if again == 'unless equal' and torch.equal(before, value):
                    continue
                value = before + value
            self._values[key] = value

    def _mover(self, name):
        """A function that moves floating values by one unit in the last place, up or down depending on a counter."""
        index = 0

        def moved(tensor):
            nonlocal index
            index += 1
            if not tensor.is_floating_point() or tensor.numel() == 0:
                return tensor
            up = (counter_bits(tensor.numel(), self.perturb, f'{name}/{index}') & 1).view(tensor.shape).to(tensor.device)
            with torch.no_grad():
                wide = _dense(tensor, name)
                goal = torch.where(up == 1, math.inf, -math.inf).to(wide.dtype)
                step = torch.nextafter(wide, goal) - wide
                step = torch.where(torch.isfinite(step) & (wide != 0), step, torch.zeros_like(step))
                if tensor.layout == torch.sparse_coo:  # the optimizer may want it sparse
                    tensor = tensor.coalesce()
                    step = step.sparse_mask(tensor)
            return tensor + step  # exact: the sum is the neighbouring number

        return moved
