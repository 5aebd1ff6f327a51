// Where a stage may begin.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// For each position 0..nodes whether a stage may begin before that node (so the result has nodes + 1 entries).
/// It may where a call stands, and another one somewhere before it, unless memory that is written in place would be
/// parted from its write: memory that an earlier call made and that this or a later call writes; memory of an input, a
/// parameter, a buffer or a constant that is written anywhere and used on both sides. Memory is that of Value::storage,
/// so views count; where it is unknown, each value is memory of its own. A number may cross like any value.
///
/// split() accepts stages that begin at any of the legal positions, all at once as well, and makes none of them empty.
/// It accepts some more: where a stage can change a copy of what it was sent. A policy has no reason to cut there.
std::vector<char> legal_cuts(const graph::Graph& graph);

}  // namespace plumbline::split
