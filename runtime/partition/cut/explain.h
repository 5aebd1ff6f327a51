// Why no cut exists: some value can be neither saved nor computed again, yet the backward needs it.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/cut/bans.h"

namespace plumbline::partition {

/// One line for a chain of nodes, each of which uses the one before: the first is banned, none that another follows can
/// be saved, and the backward wants the last, or what it computes from it.
std::string explain_unbounded(const CutInput& input, const std::vector<NodeIndex>& chain, const std::vector<Ban>& bans);

}  // namespace plumbline::partition
