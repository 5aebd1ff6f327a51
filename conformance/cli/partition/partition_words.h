// The options --must-save and --recompute of `plumbline partition`: the user's decisions for single nodes, by name.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::cli {

struct PartitionWords {
  std::vector<std::string> must_save, recompute;  ///< names of nodes of the joint graph
};

/// Tags the nodes that `words` names, and the equal calls that are merged with them before the graph is partitioned
/// (PyTorch keeps only the tag of the first, so a tag on another would be lost). Returns the names of all tagged nodes.
/// Throws InputError, and leaves the graph unchanged, for a node that cannot be tagged: it does not exist, is removed
/// because nothing uses it, can be computed only by the backward, is an input or a constant to be recomputed, or both
/// options name it or a call that is merged with it.
PartitionWords tag_nodes(partition::JointGraph& graph, const PartitionWords& words, const partition::Policy& policy,
                         const partition::PartitionOptions& options);

/// Throws InputError for a node that was partitioned against the user's decision, since some modes ignore tags. `words`
/// is the result of tag_nodes(); `options` are those that applied to `partition`.
void expect_kept(const PartitionWords& words, const partition::Partition& partition,
                 const partition::PartitionOptions& options);

}  // namespace plumbline::cli
