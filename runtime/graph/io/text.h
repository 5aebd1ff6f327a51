// The text form of a graph: one line for each input, attribute, autocast region, call, return and module call. It
// omits storage numbers and the tensors of attributes; all else can be read from it (testing/parse.h). A graph with
// every kind of line, between comments that to_text() does not write:
//
//   # * behind a type: the value requires a gradient. "also": another name of the same tensor.
//   input %0: f32[4,8] = "x"
//   parameter %1: f32[8,8]* = "fc.weight" also "head.weight"
//   parameter = "never_used.bias"
//   # transient: not in the state dict.
//   buffer %2: i64[4] = "positions" transient
//   constant %3: f32[] = "constant0"
//   autocast 0 = cpu bf16
//   # Region 1 lies in region 0.
//   autocast 1 = cpu bf16 disabled no_cache in 0
//   %4: f32[8,8]* = aten::t(%1)
//   %5: f32[4,8] = aten::matmul(%0, %4) no_grad
//   [%6: f32[2,8], %7: f32[2,8]] = aten::split.Tensor(%5, 2, 0)
//   %8: bf16[2,8]* = aten::linear(%6, %1, None) autocast 0
//   # A number has the type int, float or bool.
//   %9: int = aten::sym_size.int(%6, 0)
//   %10: f32[2,8] = aten::reshape(%7, [%9, -1]) autocast 1
//   pipe_split
//   %11: bool = aten::is_nonzero(%3)
//   [%12: f32[2,8]] = plumbline::cond(%11, [%10])
//   then {
//     input %0: f32[2,8] = "a"
//     return %0
//   }
//   else {
//     input %0: f32[2,8] = "a"
//     %1: f32[2,8] = aten::neg(%0)
//     return %1
//   }
//   return %8, %12, None
//   # The module made the nodes [3, 4): aten::linear. A pipe_split is a node, too.
//   module "fc" "torch::nn::LinearImpl" 3 4
//
// Constants: None, True, 3, 0.5 (a float always has a point, an exponent, inf or nan), "text", device "cpu",
// complex(0.0, 1.0), [1, 2]. The operator's schema determines their types, so that a parsed call has exactly the
// captured arguments.
#pragma once

#include <string>
#include <string_view>

#include "runtime/graph/graph.h"

namespace plumbline::graph {

/// Returns the text of the graph. Throws Error for a constant without a text form (a generator, a defined tensor).
std::string to_text(const Graph& graph);

/// Returns the line of one node of `graph`, without a newline and without the branches of a cond. Throws as above.
std::string to_text(const Graph& graph, const Node& node);

/// Returns the type of a value as in the text: "f32[4,8]*" (* requires a gradient), "int", "float" or "bool".
std::string value_text(const Value& value);

}  // namespace plumbline::graph
