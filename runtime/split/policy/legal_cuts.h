// Computes where a stage may begin.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// For each position 0..nodes whether a stage may begin before that node (so the result has nodes + 1 entries). It may
/// at a call with another call somewhere before it, unless the cut would separate memory that is written in place from
/// its write: memory that an earlier call made and that this or a later call writes; memory of an input, a parameter, a
/// buffer or a constant that is written anywhere and used on both sides. Memory is that of Value::storage, so views
/// count; if it is unknown, each value has separate memory. A number may cross like any value.
///
/// split() accepts stages that begin at any of the legal positions, even all at once, and makes none of them empty. It
/// accepts some more: positions where a stage can change a copy of a received value. A policy has no reason to cut
/// there.
std::vector<char> legal_cuts(const graph::Graph& graph);

}  // namespace plumbline::split
