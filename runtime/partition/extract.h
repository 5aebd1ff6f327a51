// Divides a joint graph along its saved values: selects the calls of the forward and of the backward, and the values
// passed between the two. After `_extract_fwd_bwd_modules` and `default_partition` of PyTorch's partitioners.py.
#pragma once

#include "runtime/partition/joint/effects.h"
#include "runtime/partition/partition.h"
#include "runtime/partition/policy/policy.h"

namespace plumbline::partition {

/// The half in which a subgraph will run.
enum class GraphHalf : uint8_t { Forward, Backward };

/// Returns the calls that compute `outputs` from `inputs` (which may be inner nodes), in graph order, without dead
/// ones. A call is valid if all its inputs are valid and `rules` do not bind it to the other half. Valid calls that
/// `must` run in `half` stay even without users. In the forward, an output that is a copy into an input and may run
/// only in the backward is replaced by that input. Throws InputError naming an invalid output and the node that it
/// lacks.
Subgraph extract_subgraph(const JointGraph& graph, const JointEdges& edges, const MustRun& must,
                          std::vector<NodeIndex> inputs, std::vector<NodeIndex> outputs, GraphHalf half,
                          const HalfRules& rules = {});

/// Divides partition.graph along the given values (tensors in `saved`, symbolic scalars in `saved_symbols`; each once).
/// Drops values that the backward does not use, adds the symbols in the shapes of saved values and tangents, and moves
/// values without version counter checks to the end. Sets `saved`, `saved_symbols`, `forward`, `backward` and
/// `replayed`, with calls in graph order. `edges` are those of partition.graph, so that a caller who tries many cuts
/// computes them once. Throws InputError as extract_subgraph() does.
void divide(Partition& partition, const JointEdges& edges, std::vector<NodeIndex> saved,
            std::vector<NodeIndex> saved_symbols, const Policy& policy);

/// Returns the partition after divide() and order_calls() (reorder.h): `reorder` selects Reordering::AsPyTorch or None.
Partition extract(JointGraph graph, std::vector<NodeIndex> saved, std::vector<NodeIndex> saved_symbols,
                  const Policy& policy, bool reorder);

/// Returns the default partition: saves every forward value that the backward uses, by Policy::default_saves. Does not
/// clean up the graph first. A graph with recompute tags for which Policy::default_is_min_cut holds is partitioned in
/// mode MinCut instead. Throws InputError as Policy::default_saves, force_saves() and extract_subgraph() do.
Partition default_partition(JointGraph graph, const Policy& policy, const PartitionOptions& options);

/// Whether some node is tagged to be recomputed.
bool has_recompute_tags(const JointGraph& graph);

}  // namespace plumbline::partition
