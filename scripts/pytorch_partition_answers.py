"""The results of PyTorch's partitioners for a joint graph: saved values, halves, cuts, knapsack, operator classes."""

import copy
from unittest import mock

import torch
import torch._functorch.config as functorch_config
import torch._functorch.partitioners as partitioners

from pytorch_joint_graph import operator

MODES = ('default', 'min_cut', 'aggressive', 'budget=0', 'budget=0.1', 'budget=0.25', 'budget=0.5', 'budget=0.75')
BANS = {
    'ban_if_used_far_apart': 'used_far_apart',
    'ban_if_long_fusible_chains': 'long_fusible_chains',
    'ban_if_materialized_backward': 'materialized_backward',
    'ban_if_not_in_allowlist': 'not_in_allowlist',
    'ban_if_reduction': 'reductions',
}


def settings(mode):
    fixed = {'cse': True, 'activation_memory_budget': 1.0, 'aggressive_recomputation': False}
    if mode == 'aggressive':
        fixed['aggressive_recomputation'] = True
    if mode.startswith('budget='):
        fixed['activation_memory_budget'] = float(mode.removeprefix('budget='))
    return fixed


def part_record(module, joint_names):
    inputs, ops, new, outputs = [], [], [], []
    for node in module.graph.nodes:
        if node.op == 'placeholder':
            inputs.append(node.name)
        elif node.op == 'output':
            outputs = [o.name if isinstance(o, torch.fx.Node) else None
                       for o in torch.utils._pytree.tree_leaves(node.args, is_leaf=lambda x: x is None)]
        else:
            ops.append(node.name)
            if node.name not in joint_names:
                new.append({'name': node.name, 'target': str(node.target)})
    record = {'in': inputs, 'ops': ops, 'out': outputs}
    if new:
        record['new'] = new
    return record


def run_record(joint, inputs, forward_outputs, mode, statics, storages):
    """One call of one of PyTorch's partitioners on a copy of the joint graph."""
    joint = copy.deepcopy(joint)
    partition = partitioners.default_partition if mode == 'default' else partitioners.min_cut_rematerialization_partition
    cuts, knapsacks = [], []
    solve, optimise = partitioners.solve_min_cut, partitioners._optimize_runtime_with_given_memory

    def recorded_cut(graph, info, options, dont_ban=None):
        saved, banned = solve(graph, info, options, dont_ban)
        cuts.append({'bans': [BANS[k] for k in BANS if getattr(options, k)], 'dont_ban': [n.name for n in dont_ban or ()],
                     'saved': [n.name for n in saved], 'banned': [n.name for n in banned]})
        return saved, banned

    def recorded_knapsack(graph, memory, runtimes, capacity, info, nodes):
        value, save, again = optimise(graph, memory, runtimes, capacity, info, nodes)
        knapsacks.append({'nodes': [n.name for n in nodes], 'memory': memory, 'runtime': runtimes, 'capacity': capacity,
                          'value': value, 'save': save, 'recompute': again})
        return value, save, again

    record = {'static_inputs': statics, 'config': settings(mode), 'partitioner': partition.__name__}
    names = {n.name for n in joint.graph.nodes}
    primals = sum(1 for n in joint.graph.nodes if partitioners._is_primal(n))
    with functorch_config.patch(**settings(mode)), mock.patch.object(partitioners, 'solve_min_cut', recorded_cut), \
         mock.patch.object(partitioners, '_optimize_runtime_with_given_memory', recorded_knapsack):
        try:
            forward, backward = partition(joint, inputs, num_fwd_outputs=forward_outputs, static_lifetime_input_indices=statics)
        except Exception as error:
            return record | {'error': type(error).__name__, 'message': str(error).splitlines()[0][:300] if str(error) else ''}
    fw, bw = part_record(forward, names), part_record(backward, names)
    crossing = [n for n in fw['out'][forward_outputs:] if n in names]  # the others are states of random generators
    values = {n.name: n.meta.get('val') for n in joint.graph.nodes}
    record['saved'] = [n for n in crossing if not isinstance(values.get(n), (torch.SymInt, torch.SymFloat, torch.SymBool))]
    record['saved_sym'] = [n for n in crossing if n not in record['saved']]
    table = storages['nodes']
    record['bytes'] = sum((table[n].get('out') or {}).get('bytes', 0) for n in record['saved'])
    held = {(table[n].get('out') or {}).get('storage') for n in record['saved']} - storages['primal'] - {None}
    record['bytes_new_storage'] = sum(storages['bytes'][s] for s in held)
    record |= {'fw': fw, 'bw': bw, 'recomputed': len(set(fw['ops']) & set(bw['ops']))}
    record['cuts'] = cuts
    if knapsacks:
        record['knapsack'] = knapsacks[-1]
    return record


def op_classes(joint):
    lists = partitioners.get_default_op_list()
    classes = {'recomputable': lists.recomputable_ops, 'random': lists.random_ops, 'view': lists.view_ops,
               'compute_intensive': lists.compute_intensive_ops, 'fusible': lists.fusible_ops}
    found = {}
    for node in joint.graph.nodes:
        if node.op == 'call_function':
            packet = partitioners.get_aten_target(node)
            found[operator(node.target)[0]] = [k for k, ops in classes.items() if packet in ops]
    return found
