// Explains why no cut exists: the backward needs a value that can be neither saved nor recomputed.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/cut/bans.h"

namespace plumbline::partition {

/// Explains, in one line, a chain of nodes each of which uses the one before: the first is banned from recomputation,
/// no node of the chain can be saved, and the backward needs the last one or a value computed from it.
std::string explain_unbounded(const CutInput& input, const std::vector<NodeIndex>& chain, const std::vector<Ban>& bans);

}  // namespace plumbline::partition
