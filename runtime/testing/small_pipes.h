// Pipes for the tests that print, store and send pipes: written as text, bound to random tensors.
#pragma once

#include <ATen/ATen.h>

#include "runtime/graph/testing/parse.h"
#include "runtime/split/split.h"

namespace plumbline::testing {

/// Three stages: "w" is used by stages 0 and 2, v5 skips stage 1, stage 1 has a transient buffer, a constant and a
/// cond.
inline graph::Graph three_stage_graph() {
  graph::Graph graph = graph::parse_graph(R"(input %0: f32[2,3] = "x"
input %1: f32[2,3] = "mask"
parameter %2: f32[3,3]* = "block.w" also "tied.w"
parameter = "unused"
buffer %3: f32[3] = "mean" transient
constant %4: f32[] = "scale"
%5: f32[2,3]* = aten::matmul(%0, %2)
%6: f32[2,3] = aten::mul.Tensor(%1, %1)
pipe_split
%7: f32[2,3]* = aten::add.Tensor(%5, %3, 1)
%8: f32[] = aten::sum(%6, None)
%9: bool[] = aten::gt.Scalar(%8, 3.0)
[%10: f32[2,3]*] = plumbline::cond(%9, [%7, %4])
then {
  input %0: f32[2,3]* = "a"
  input %1: f32[] = "s"
  %2: f32[2,3]* = aten::mul.Tensor(%0, %1)
  return %2
}
else {
  input %0: f32[2,3]* = "a"
  input %1: f32[] = "s"
  return %0
}
pipe_split
%11: f32[2,3]* = aten::matmul(%10, %2)
%12: f32[2,3]* = aten::add.Tensor(%11, %5, 1)
%13: f32[]* = aten::sum(%12, None)
return %13, %12
module "block" "Block" 0 2
module "head" "a::Head" 8 11
)");
  graph.attributes[0].tensor = at::randn({3, 3}).requires_grad_(true);
  graph.attributes[1].tensor = at::randn({5}).requires_grad_(true);
  graph.attributes[2].tensor = at::randn({3});
  graph.attributes[3].tensor = at::randn({});
  return graph;
}

inline split::Pipe three_stage_pipe() { return split::split(three_stage_graph()); }

}  // namespace plumbline::testing
