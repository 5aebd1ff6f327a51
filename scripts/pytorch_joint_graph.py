"""Joint graphs of PyTorch: extracted from AOTAutograd, and written in the format "plumbline-joint-graph/1"."""

import copy
import math

import torch
import torch._functorch.config as functorch_config
import torch._functorch.partitioners as partitioners
from torch._dynamo.backends.common import aot_autograd
from torch.utils.checkpoint import CheckpointPolicy

TAGS = ('pointwise', 'nondeterministic_seeded', 'core', 'inplace_view', 'data_dependent_output', 'dynamic_output_shape')


def with_joint_graph(model, inputs, decompositions, visit):
    """The result of `visit` for AOTAutograd's joint graph, with its inputs, the number of forward outputs
    and the static indices. `visit` runs while PyTorch compiles: outside, dead random calls are not removed."""
    found = []

    def capture(joint, joint_inputs, *, num_fwd_outputs, static_lifetime_input_indices=None, **_):
        found.append(visit(copy.deepcopy(joint), joint_inputs, num_fwd_outputs, list(static_lifetime_input_indices or ())))
        return partitioners.default_partition(joint, joint_inputs, num_fwd_outputs=num_fwd_outputs)

    def compiler(module, _):
        return module.forward

    torch._dynamo.reset()
    torch.compile(model, backend=aot_autograd(
        fw_compiler=compiler, bw_compiler=compiler, partition_fn=capture, decompositions=decompositions))(*inputs)
    if len(found) != 1:
        raise SystemExit(f'{type(model).__name__}: {len(found)} joint graphs where one was expected')
    return found[0]


def hint(value):
    return value.node.hint if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else value


def extent(value):
    if isinstance(value, torch.SymInt):
        return {'sym': str(value.node.expr), 'hint': hint(value)}
    return int(value)


def argument(value):
    """One argument in the JSON format."""
    if isinstance(value, torch.fx.Node):
        return {'node': value.name}
    if isinstance(value, (list, tuple)):
        return [argument(v) for v in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {'float': repr(value)}
    if isinstance(value, complex):
        return {'complex': [value.real, value.imag]}
    if isinstance(value, slice):
        return {'slice': [argument(value.start), argument(value.stop), argument(value.step)]}
    for kind in ('dtype', 'layout', 'memory_format'):
        if isinstance(value, getattr(torch, kind)):
            return {kind: str(value).removeprefix('torch.')}
    if isinstance(value, torch.device):
        return {'device': str(value)}
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return {'sym': str(value.node.expr), 'hint': hint(value)}
    return {'other': repr(value)}


class Storages:
    """Numbers the memory behind tensors, in the order of first occurrence."""

    def __init__(self):
        self.number, self.bytes = {}, []

    def of(self, tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in self.number:
            self.number[storage._cdata] = len(self.bytes)
            self.bytes.append(int(hint(storage.nbytes())))
        return self.number[storage._cdata]


def result(value, storages):
    if isinstance(value, torch.Tensor):
        shape = list(value.shape)
        out = {
            'dtype': str(value.dtype).removeprefix('torch.'),
            'shape': [extent(n) for n in shape],
            'strides': [extent(n) for n in value.stride()],
        }
        if hint(value.storage_offset()) != 0:
            out['offset'] = extent(value.storage_offset())
        out['bytes'] = math.prod(int(hint(n)) for n in shape) * value.element_size()
        out['storage'] = storages.of(value)
        if value.device.type != 'cpu':
            out['device'] = str(value.device)
        return out
    if isinstance(value, (list, tuple)):
        return {'tuple': [result(v, storages) for v in value]}
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool, bool, int, float)):
        kinds = {torch.SymInt: 'int', torch.SymFloat: 'float', torch.SymBool: 'bool', bool: 'bool', int: 'int', float: 'float'}
        out = {'scalar': kinds[type(value)]}
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            out |= {'sym': str(value.node.expr), 'hint': hint(value)}
        else:
            out['hint'] = value
        return out
    return None


def operator(target):
    """Name and overload."""
    if isinstance(target, torch._ops.OpOverload):
        return f'{target.namespace}::{target._schema.name.split("::")[1]}', target._overloadname
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f'higher_order::{target.name()}', 'default'
    module = getattr(target, '__module__', '').removeprefix('_')
    name = target.__name__
    return (f'operator::{name}' if module == 'operator' else f'{module}::{name}'), 'default'


def kind(node):
    if node.op == 'placeholder':
        tests = (('tangent', partitioners._is_tangent), ('primal', partitioners._is_primal),
                 ('bwd_seed', partitioners._is_bwd_seed_offset), ('fwd_seed', partitioners._is_fwd_seed_offset))
        return next((name for name, test in tests if test(node)), 'other')
    if node.op == 'get_attr':
        return 'get_attr'
    return 'getitem' if getattr(node.target, '__name__', '') == 'getitem' else 'call'


def flops(node):
    with functorch_config.patch(activation_memory_budget_runtime_estimator='flops'):
        try:
            return int(partitioners.estimate_runtime(node))
        except Exception:  # an operator that cannot run on fake tensors is treated like any other
            return 1


def symbols_of(value):
    from torch.fx.experimental.symbolic_shapes import free_symbols

    return sorted(str(s) for s in free_symbols(value)) if isinstance(value, (torch.Tensor, torch.SymInt)) else []


def node_record(node, storages, primals):
    value = node.meta.get('val')
    record = {'name': node.name, 'kind': kind(node)}
    if node.op == 'get_attr':
        record['attr'] = str(node.target)
    if node.op == 'call_function':
        name, overload = operator(node.target)
        record['op'] = name
        if record['kind'] == 'call':
            record['overload'] = overload
        record['args'] = [argument(a) for a in node.args]
        if node.kwargs:
            record['kwargs'] = {k: argument(a) for k, a in node.kwargs.items()}
    record['out'] = result(value, storages)
    if isinstance(value, (list, tuple)):
        record['multi_output'] = True
    if node.op != 'placeholder' and isinstance(value, torch.Tensor):
        owner = primals.get(storages.of(value))
        if owner:
            record['aliases_input'] = owner
    symbols = symbols_of(value)
    if symbols:
        record['free_symbols'] = symbols
    if node.op == 'placeholder' and isinstance(value, torch.SymInt) and len(symbols) == 1:
        record['binds'] = symbols[0]
    tags = []
    if isinstance(node.target, torch._ops.OpOverload):
        tags += [t for t in TAGS if getattr(torch.Tag, t) in node.target.tags]
        tags += ['mutable'] if node.target._schema.is_mutable else []
        returned = (r.alias_info for r in node.target._schema.returns)
        tags += ['view'] if any(a is not None and not a.is_write for a in returned) else []
    if node.op == 'call_function' and node.is_impure():
        tags.append('impure')
    if tags:
        record['tags'] = tags
    mark = node.meta.get('partitioner_tag')
    if mark:
        record['mark'] = mark
    if node.meta.get('aot_runtime_epilogue_input_mutation'):
        record['epilogue_mutation'] = True
    policy = node.meta.get('recompute')
    if policy is not None:
        record['recompute'] = policy.name if isinstance(policy, CheckpointPolicy) else ('PREFER_RECOMPUTE' if policy else 'MUST_SAVE')
        record['region'] = node.meta.get('ac_graph_id', 0)
    if record['kind'] == 'call':
        count = flops(node)
        if count != 1:
            record['flops'] = count
    return record


def symbol_records(graph):
    """Hint and range of each symbol that the shapes of the graph contain."""
    found = {}
    for node in graph.nodes:
        value = node.meta.get('val')
        sizes = [value] if isinstance(value, torch.SymInt) else list(value.shape) if isinstance(value, torch.Tensor) else []
        for size in sizes:
            if not isinstance(size, torch.SymInt):
                continue
            environment = size.node.shape_env
            for symbol in size.node.expr.free_symbols:
                bounds = environment.var_to_range[symbol]
                low, high = (int(b) if b.is_Integer else str(b) for b in (bounds.lower, bounds.upper))
                found[str(symbol)] = {'hint': int(size.node.shape_env.size_hint(symbol)), 'range': [low, high]}
    return dict(sorted(found.items()))


def graph_record(graph, forward_outputs):
    storages, nodes, primals = Storages(), [], {}
    for node in graph.nodes:
        if node.op == 'output':
            continue
        nodes.append(node_record(node, storages, primals))
        value = node.meta.get('val')
        if node.op == 'placeholder' and isinstance(value, torch.Tensor) and nodes[-1]['kind'] == 'primal':
            primals.setdefault(storages.of(value), node.name)
    outputs = list(torch.utils._pytree.tree_leaves(next(n for n in graph.nodes if n.op == 'output').args, is_leaf=lambda x: x is None))
    record = {'num_forward_outputs': forward_outputs, 'storage_bytes': storages.bytes,
              'outputs': [o.name if isinstance(o, torch.fx.Node) else None for o in outputs], 'nodes': nodes}
    symbols = symbol_records(graph)
    if symbols:
        record['symbols'] = symbols
    return record
