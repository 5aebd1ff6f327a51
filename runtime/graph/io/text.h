// The text form of a graph: one line per input, attribute, autocast region, call, output list and module call. It
// parses back to the same graph, except for storage numbers, which it omits, and tensors of attributes.
//
//   input %0: f32[4,8] = "x"
//   parameter %1: f32[8,8]* = "fc.weight" also "head.weight"      (* requires a gradient)
//   parameter = "never_used.bias"
//   buffer %9: i64[4] = "positions" transient                      (no part of the state dict)
//   autocast 0 = cpu bf16
//   autocast 1 = cpu bf16 disabled no_cache in 0                   (lies in region 0)
//   %2: f32[8,8]* = aten::t(%1)
//   %3: f32[4,8]* = aten::matmul(%0, %2) no_grad
//   [%4: f32[2,8], %5: f32[2,8]] = aten::split.Tensor(%3, 2, 0)
//   %5: f32[4,8]* = aten::linear(%4, %2, None) autocast 0
//   %6: int = aten::sym_size.int(%4, 0)                            (numbers: int, float, bool)
//   %7: f32[4,8]* = aten::reshape(%5, [%6, -1])
//   [%8: f32[4,8]*] = plumbline::cond(%10, [%7])
//   then {
//     input %0: f32[4,8]* = "a"
//     return %0
//   }
//   else {
//     ...
//   }
//   pipe_split
//   return %4, None
//   module "fc" "torch::nn::LinearImpl" 0 2                        (made the nodes 0 and 1)
//
// Constants: None, True, 3, 0.5 (a float always has a point, an exponent, inf or nan), "text", device "cpu",
// complex(0.0, 1.0), [1, 2]. The operator's schema determines their types, so that a parsed call has exactly the
// captured arguments.
#pragma once

#include <string>
#include <string_view>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// Throws Error for a constant without a text form (a generator, a defined tensor).
std::string to_text(const Graph& graph);

/// The line of one node of `graph`, without the branches of a cond.
std::string to_text(const Graph& graph, const Node& node);

/// The facts about a value in the text form: "f32[4,8]*" (* requires a gradient), "int", "float" or "bool".
std::string value_text(const Value& value);

/// The attributes of the result have no tensors: bind them before a run. Throws InputError naming line, column and the
/// expected text.
Graph parse_graph(std::string_view text);

}  // namespace plumbline::graph
