// Measures the time of each node of a graph, forward and backward.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// Seconds of forward and backward together, by node, each run by itself on the tensors that it gets when `graph` runs
/// on `inputs`; backward begins with gradients of ones. Takes the minimum of `repetitions` runs over the whole graph
/// (at least 1), node by node, which excludes other load on the machine; the first run warms up the others. Markers
/// take 0. Afterwards inputs, parameters, buffers and the default random generator are restored. Throws InputError as
/// for_each_node_alone() does.
std::vector<double> measure_node_times(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
                                       int repetitions);

}  // namespace plumbline::split
