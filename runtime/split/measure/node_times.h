// How long each node of a graph takes, forward and backward.
#pragma once

#include <vector>

#include "runtime/graph/graph.h"

namespace plumbline::split {

/// Seconds of forward and backward together, by node, each run by itself on the tensors that it meets when `graph` runs
/// on `inputs`; backward begins with gradients of ones. Of `repetitions` runs over the whole graph (at least 1) the
/// least is taken, node by node, which leaves out what else the machine does; the first run warms up all the others.
/// Markers take 0. Inputs, parameters, buffers and the default random generator are afterwards as they were.
/// Throws InputError as for_each_node_alone() does.
std::vector<double> measure_node_times(const graph::Graph& graph, const std::vector<at::Tensor>& inputs,
                                       int repetitions);

}  // namespace plumbline::split
