// Computes the positions at which a stage may begin.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// Returns a flag for each position p from 0 to the number of nodes: whether a stage may begin before node p. Position
/// p is legal if node p is a call, an earlier node is a call, and the cut does not separate memory from an in-place
/// write. It separates them if an earlier call made the memory and node p or a later one writes it, or if the memory is
/// that of an input, parameter, buffer or constant, is written anywhere, and is used on both sides. Values with the
/// same Value::storage share memory, so views count; a value with unknown storage has separate memory. A number may
/// cross like any value.
///
/// split() accepts stages that begin at any of the legal positions, even at all of them, and none is empty. It also
/// accepts positions at which a stage changes a copy of a received value; a policy has no reason to cut there.
std::vector<char> legal_cuts(const graph::Graph& graph);

}  // namespace plumbline::split
