// The text form of a graph: one line each for inputs, attributes, calls and outputs; it parses back.
//
//   input %0: f32[4,8] = "x"
//   parameter %1: f32[8,8]* = "fc.weight" also "head.weight"      (* requires a gradient)
//   parameter = "never_used.bias"
//   %2: f32[8,8]* = aten::t(%1)
//   %3: f32[4,8]* = aten::matmul(%0, %2) no_grad
//   [%4: f32[2,8], %5: f32[2,8]] = aten::split.Tensor(%3, 2, 0)
//   pipe_split
//   return %4, None
//   module "fc" "torch::nn::LinearImpl" 0 2                        (made the nodes 0 and 1)
//
// Constants: None, True, 3, 0.5 (a float always shows a point, an exponent, inf or nan), complex 0.5 1.0, "text",
// device "cpu", [1, 2]. Their types are those of the operator's schema, so that a parsed call has exactly the captured
// arguments.
#pragma once

#include <string>
#include <string_view>

#include "runtime/graph/graph.h"

namespace plumbline {

std::string to_text(const Graph& graph);

/// The line of one node, as to_text prints it.
std::string to_text(const Graph& graph, const Node& node);

/// Attributes come back by name, without tensors: bind them before a run.
/// Throws InputError naming line and column, and what was expected there.
Graph parse_graph(std::string_view text);

}  // namespace plumbline
