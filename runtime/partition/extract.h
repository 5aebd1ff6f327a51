// Cutting a joint graph along its saved values: which calls run in the forward and in the backward, in which order, and
// what passes between them. After `_extract_fwd_bwd_modules`, `reordering_to_mimic_autograd_engine` and
// `raise_getitems` of the functorch partitioners.
#pragma once

#include "runtime/partition/classify.h"
#include "runtime/partition/partition.h"

namespace plumbline {

/// The calls that make `outputs` from `inputs`, without dead ones, in graph order. Throws InputError naming the node:
/// an output that needs what is not among the inputs.
Subgraph extract_subgraph(const JointGraph& graph, std::vector<NodeIndex> inputs, std::vector<NodeIndex> outputs);

/// Forward and backward for these saved values; those that the backward does not use are dropped, symbols that it needs
/// are bound. `reorder`: the backward runs in the order in which autograd's engine would run it, each recomputation
/// right before its use. Fills everything of Partition but `cuts`; `graph` is moved into it.
Partition extract(JointGraph graph, std::vector<NodeIndex> saved, std::vector<NodeIndex> saved_symbols,
                  const Policy& policy, bool reorder);

/// The default partition: everything that the backward uses of the forward is saved.
Partition default_partition(JointGraph graph, const Policy& policy, const PartitionOptions& options);

}  // namespace plumbline
