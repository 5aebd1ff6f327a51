// The attributes of a graph that a run writes, such as the buffers of a batch norm.
#pragma once

#include <set>

#include "runtime/graph/graph.h"

namespace plumbline::engine {

/// Returns the values (Attribute::value) of the attributes whose memory a node writes, directly or through a view.
/// Needs storage numbers (annotate.h) to detect views; calls inside the branches of a cond are not examined.
std::set<graph::ValueId> written_attributes(const graph::Graph& graph);

}  // namespace plumbline::engine
