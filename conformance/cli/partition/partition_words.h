// The options --must-save and --recompute of `plumbline partition`: the user's choice for single nodes, by name.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::cli {

struct PartitionWords {
  std::vector<std::string> must_save, recompute;  ///< names of nodes
};

/// Tags the nodes, and the equal calls that are merged with them before the graph is partitioned (PyTorch keeps only
/// the tag of the first, so a tag on another would be lost). Returns the names of all tagged nodes. Throws InputError
/// naming a node that cannot be tagged: it does not exist, has no users, only the backward can compute it, it is an
/// input to be recomputed, or both options name it or a call that is merged with it.
PartitionWords tag_nodes(partition::JointGraph& graph, const PartitionWords& words, const partition::Policy& policy,
                         const partition::PartitionOptions& options);

/// Throws InputError naming a node that was partitioned against the user's choice, as by modes that ignore tags.
/// `words`: the result of tag_nodes(). `options`: those in force.
void expect_kept(const PartitionWords& words, const partition::Partition& partition,
                 const partition::PartitionOptions& options);

}  // namespace plumbline::cli
