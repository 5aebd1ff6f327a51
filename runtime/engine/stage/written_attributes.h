// Which of a graph's own tensors a run writes, such as the buffers of a batch norm.
#pragma once

#include <set>

#include "runtime/graph/graph.h"

namespace plumbline::engine {

/// The values of the attributes that a call writes. Views of an attribute share its storage number.
std::set<graph::ValueId> written_attributes(const graph::Graph& graph);

}  // namespace plumbline::engine
