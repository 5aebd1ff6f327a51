// --must-save and --recompute of `plumbline partition`: the user's word on single nodes, by name.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/partition.h"

namespace plumbline::cli {

struct PartitionWords {
  std::vector<std::string> must_save, recompute;  ///< names of nodes
};

/// Tags the nodes, and with them the calls that are merged with them before the graph is divided (PyTorch keeps only
/// the tag of the first, so that a word on another would be lost); returns the names of all. Throws InputError naming a
/// node that the word cannot be said of: it is not there, nobody uses it, only the backward can compute it, an input is
/// to be computed again, or both words are said of it or of two calls that become one.
PartitionWords tag_nodes(partition::JointGraph& graph, const PartitionWords& words, const partition::Policy& policy,
                         const partition::PartitionOptions& options);

/// Throws InputError naming a node that was divided against the user's word, as modes do that look at no tags. `words`:
/// as tag_nodes() returns them. `options`: those in force.
void expect_kept(const PartitionWords& words, const partition::Partition& partition,
                 const partition::PartitionOptions& options);

}  // namespace plumbline::cli
