// Which of a graph's own tensors a run of it writes: the buffers of a batch norm, for one.
#pragma once

#include <set>

#include "runtime/graph/graph.h"

namespace plumbline::engine {

/// The values of the attributes that a call writes. The views of an attribute have its number of storage.
std::set<graph::ValueId> written_attributes(const graph::Graph& graph);

}  // namespace plumbline::engine
