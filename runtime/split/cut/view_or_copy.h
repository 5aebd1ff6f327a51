// Calls that return a view of their argument or a copy, as its strides allow, such as reshape(). Values cross borders
// contiguous, so that such a call may do in a stage what it did not do in the captured run, and a write in place would
// then be seen by other values.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// What a call must return in its stage, so that writes in place are seen where the captured run saw them.
enum class Returns : uint8_t {
  Any,   ///< no write tells a view from a copy; also of every other call
  View,  ///< a view, as in the captured run: a write through it is seen through its argument, or the reverse
  Copy,  ///< a copy, as in the captured run: its memory or its argument's is written
};

/// Indexed as graph.nodes. `stage_of_node` is StageOfNodes::stages. Any for all calls of stage 0, whose
/// inputs lie as in the captured run, and of a graph whose values have no storage numbers (read from text).
std::vector<Returns> required_returns(const graph::Graph& graph, const std::vector<int>& stage_of_node);

}  // namespace plumbline::split
