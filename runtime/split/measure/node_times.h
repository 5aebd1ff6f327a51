// Measures the time of each node of a graph, forward and backward.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// Returns the seconds of each node's forward and backward together, indexed as graph.nodes; 0 for markers. Each node
/// runs separately (node_alone.h) on the tensors that it reads when `graph` runs on `inputs`; backward begins with
/// gradients of ones. The whole graph runs `repetitions` times (1 or more; the first run warms up), and each node's
/// minimum is returned, which excludes other load on the machine. Afterwards inputs, parameters, buffers and the
/// default random generator are restored. Throws InputError as for_each_node_alone() does.
std::vector<double> measure_node_times(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
                                       int repetitions);

}  // namespace plumbline::split
