// Why no cut exists: some value can be neither saved nor computed again, yet the backward needs it.
#pragma once

#include <string>
#include <vector>

#include "runtime/partition/bans.h"

namespace plumbline {

/// Why a node cannot be saved; empty where it can be.
std::string why_not_saved(const CutInput& input, NodeIndex node);

/// One line for a chain of nodes, each of which uses the one before: the first is banned, none but the last can be
/// saved, and the last is wanted by the backward.
std::string explain_unbounded(const CutInput& input, const std::vector<NodeIndex>& chain, const std::vector<Ban>& bans);

}  // namespace plumbline
