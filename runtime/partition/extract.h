// Divides a joint graph along its saved values: decides which calls run in the forward and in the backward, and what is
// passed between the two. After `_extract_fwd_bwd_modules` and `default_partition` of PyTorch's partitioners.py.
#pragma once

#include "runtime/partition/joint/effects.h"
#include "runtime/partition/partition.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// Where a subgraph will run.
enum class GraphHalf : uint8_t { Any, Forward, Backward };

/// The calls that compute `outputs` from `inputs` (which may be inner nodes), without dead ones, in graph order. A call
/// is valid if all of its inputs are and `rules` do not place it in the other half. Calls that `must` run in that half
/// stay even without users; in `Any`, so do all calls with effects. Throws InputError naming an invalid output and the
/// input that it lacks.
Subgraph extract_subgraph(const JointGraph& graph, const JointEdges& edges, const MustRun& must,
                          std::vector<NodeIndex> inputs, std::vector<NodeIndex> outputs, GraphHalf half,
                          const HalfRules& rules = {});
Subgraph extract_subgraph(const JointGraph& graph, std::vector<NodeIndex> inputs, std::vector<NodeIndex> outputs);

/// Divides partition.graph along the given values (tensors in `saved`, symbolic scalars in `saved_symbols`; each once,
/// in the order in which the forward returns them). Drops values that the backward does not use, adds the symbols that
/// the shapes of saved values need, and moves values without version counter checks to the end. Fills all fields but
/// `graph` and `cuts`, with calls in graph order. `edges` are those of partition.graph, so that a caller who tries many
/// cuts computes them once.
void divide(Partition& partition, const JointEdges& edges, std::vector<NodeIndex> saved,
            std::vector<NodeIndex> saved_symbols, const Policy& policy);

/// divide() and order_calls() (reorder.h). `graph` is moved into the result.
Partition extract(JointGraph graph, std::vector<NodeIndex> saved, std::vector<NodeIndex> saved_symbols,
                  const Policy& policy, bool reorder);

/// The default partition: saves every forward value that the backward uses, by Policy::default_saves. Does not clean up
/// the graph first. Throws InputError naming a node that can be neither saved nor divided.
Partition default_partition(JointGraph graph, const Policy& policy, const PartitionOptions& options);

/// Whether some node is tagged to be recomputed.
bool has_recompute_tags(const JointGraph& graph);

}  // namespace plumbline::partition
