"""The first passes of PyTorch's min-cut partitioner on a joint graph: remove dead nodes, merge equal ones."""

import copy
from unittest import mock

import torch
from torch._functorch.compile_utils import fx_graph_cse


def cse_record(joint, forward_outputs):
    """The first passes of the min-cut partitioner on the graph."""
    joint = copy.deepcopy(joint)
    before = [n.name for n in joint.graph.nodes]
    joint.graph.eliminate_dead_code()
    alive = {n.name for n in joint.graph.nodes}
    knobs = {}
    if 'extra_node_key' in fx_graph_cse.__code__.co_varnames:
        needed = set()
        outputs = list(next(n for n in joint.graph.nodes if n.op == 'output').args[0])
        stack = [o for o in outputs[forward_outputs:] if isinstance(o, torch.fx.Node)]
        while stack:
            node = stack.pop()
            if node not in needed:
                needed.add(node)
                stack.extend(node.all_input_nodes)
        knobs['extra_node_key'] = lambda node: node in needed
    merged, copied = {}, {}
    node_copy = torch.fx.Graph.node_copy

    # Only the pass itself knows which node replaces a merged one: record the copies and their originals.
    def recorded_copy(graph, node, transform):
        new = node_copy(graph, node, transform)
        copied[new] = node.name
        return new

    with mock.patch.object(torch.fx.Graph, 'node_copy', recorded_copy):
        left = fx_graph_cse(joint.graph, **knobs)
    kept = set(copied.values())
    by_position = {}
    # A node without a copy was merged: its users in the new graph read the kept node at the same argument position.
    new_of = {name: new for new, name in copied.items()}
    for node in joint.graph.nodes:
        if node.name in kept or node.op == 'output':
            continue
        for user in node.users:
            if user.op == 'output':
                continue
            new_user = new_of.get(user.name)
            if new_user is None:
                continue
            old_args = torch.utils._pytree.tree_leaves((user.args, dict(user.kwargs)))
            new_args = torch.utils._pytree.tree_leaves((new_user.args, dict(new_user.kwargs)))
            merged[node.name] = next(copied[b] for a, b in zip(old_args, new_args) if a is node)
            break
        else:
            by_position[node.name] = [u.name for u in node.users]
    while by_position:  # the users were merged too: match by the arguments of their kept node
        for name, users in list(by_position.items()):
            twin = next((merged[u] for u in users if u in merged), None)
            if twin is None:
                continue
            old = next(n for n in joint.graph.nodes if n.name == name)
            user = next(u for u in old.users if u.name in merged and merged[u.name] == twin)
            other = next(n for n in joint.graph.nodes if n.name == twin)
            old_args = torch.utils._pytree.tree_leaves((user.args, dict(user.kwargs)))
            new_args = torch.utils._pytree.tree_leaves((other.args, dict(other.kwargs)))
            target = next(b.name for a, b in zip(old_args, new_args) if a is old)
            merged[name] = merged.get(target, target)
            del by_position[name]
    count = sum(1 for n in left.nodes if n.op != 'output')
    return {'dce_removed': [n for n in before if n not in alive], 'cse_merged': merged, 'nodes_left': count}
