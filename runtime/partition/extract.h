// Cutting a joint graph along its saved values: which calls run in the forward and in the backward, in which order, and
// what passes between them. After `_extract_fwd_bwd_modules` and `default_partition` of PyTorch's partitioners.py.
#pragma once

#include "runtime/partition/cut/classify.h"
#include "runtime/partition/joint/effects.h"
#include "runtime/partition/partition.h"

namespace plumbline::partition {

/// Where a subgraph will run.
enum class GraphHalf : uint8_t { Any, Forward, Backward };

/// The calls that make `outputs` from `inputs` (which may be inner nodes), without dead ones, in graph order. A call is
/// valid where all of its inputs are, but not where `rules` place it in the other half. Calls that `must` run in that
/// half stay without users; in `Any`, all calls with effects do. Throws InputError naming an output that is not valid,
/// and what it lacks.
Subgraph extract_subgraph(const JointGraph& graph, const JointEdges& edges, const MustRun& must,
                          std::vector<NodeIndex> inputs, std::vector<NodeIndex> outputs, GraphHalf half,
                          const HalfRules& rules = {});
Subgraph extract_subgraph(const JointGraph& graph, std::vector<NodeIndex> inputs, std::vector<NodeIndex> outputs);

/// Divides partition.graph along these values (tensors in `saved`, symbolic scalars in `saved_symbols`; each once, in
/// the order in which they are to be returned). Those that the backward does not use are dropped; symbols in the shapes
/// of what crosses are bound; values without version counter checks go last. Fills all fields but `graph` and `cuts`,
/// calls in graph order. For whoever tries many cuts of one graph: `edges` are those of partition.graph.
void divide(Partition& partition, const JointEdges& edges, std::vector<NodeIndex> saved,
            std::vector<NodeIndex> saved_symbols, const Policy& policy);

/// divide() and order_calls() (reorder.h). `graph` is moved into the result.
Partition extract(JointGraph graph, std::vector<NodeIndex> saved, std::vector<NodeIndex> saved_symbols,
                  const Policy& policy, bool reorder);

/// The default partition: everything that the backward uses of the forward is saved, by Policy::default_saves. Takes
/// the graph as it is: no clean-up before. Throws InputError naming a node that can neither be saved nor divided.
Partition default_partition(JointGraph graph, const Policy& policy, const PartitionOptions& options);

/// Some node is tagged to be computed again.
bool has_recompute_tags(const JointGraph& graph);

}  // namespace plumbline::partition
