// Explains in a sentence why no cut exists: the backward needs a value that can be neither saved nor recomputed.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/cut/bans.h"

namespace plumbline::partition {

/// Returns one line, "no partition exists: ...", with a reason for each node of `chain`. Each node of the chain reads
/// the node before it: the first is banned from recomputation, none can be saved, and the backward needs the last, or a
/// tag requires its recomputation. `bans` is indexed by NodeIndex (bans.h).
std::string explain_unbounded(const CutInput& input, const std::vector<NodeIndex>& chain, const std::vector<Ban>& bans);

}  // namespace plumbline::partition
