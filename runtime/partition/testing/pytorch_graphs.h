// For tests: graphs of PyTorch's TestPartitioning (test/functorch/test_aotdispatch.py) that several tests use.
#pragma once

#include <vector>

#include "runtime/partition/testing/joint_graph_builder.h"

namespace plumbline::testing {

/// x.cos().cos().cos() of 10x10 floats and its backward, as autograd traces it.
struct Cosines {
  JointGraphBuilder build;
  partition::NodeIndex x = build.primal(400), tangent = build.tangent(400);
  partition::NodeIndex cos = build.call("cos", {x}, 400), cos_1 = build.call("cos", {cos}, 400),
                       cos_2 = build.call("cos", {cos_1}, 400);
  partition::NodeIndex sin = in_backward("sin", {cos_1}), neg = in_backward("neg", {sin}),
                       mul = in_backward("mul", {tangent, neg});
  partition::NodeIndex sin_1 = in_backward("sin", {cos}), neg_1 = in_backward("neg", {sin_1}),
                       mul_1 = in_backward("mul", {mul, neg_1});
  partition::NodeIndex sin_2 = in_backward("sin", {x}), neg_2 = in_backward("neg", {sin_2}),
                       mul_2 = in_backward("mul", {mul_1, neg_2});
  partition::JointGraph graph() const { return build.graph({cos_2}, {mul_2}); }

 private:
  partition::NodeIndex in_backward(const char* op, const std::vector<partition::NodeIndex>& inputs) {
    build.begin_backward();
    return build.call(op, inputs, 400);
  }
};

/// test_recompute_partitioning: sin(sin(a)) + b of 10x10 floats.
inline partition::JointGraph sin_sin_add() {
  JointGraphBuilder build;
  const partition::NodeIndex a = build.primal(400), b = build.primal(400), tangent = build.tangent(400);
  const partition::NodeIndex sin = build.call("sin", {a}, 400), sin_1 = build.call("sin", {sin}, 400),
                             add = build.call("add", {sin_1, b}, 400);
  build.begin_backward();
  const partition::NodeIndex cos = build.call("cos", {sin}, 400), mul = build.call("mul", {tangent, cos}, 400),
                             cos_1 = build.call("cos", {a}, 400), mul_1 = build.call("mul", {mul, cos_1}, 400);
  return build.graph({add}, {mul_1, tangent});
}

/// test_default_partitioner_getitem: layer_norm of 3x10 floats with weight and bias.
inline partition::JointGraph layer_norm() {
  JointGraphBuilder build;
  const partition::NodeIndex x = build.primal(120), w = build.primal(40), b = build.primal(40),
                             tangent = build.tangent(120);
  const std::vector<partition::NodeIndex> norm = build.multi("native_layer_norm", {x, w, b}, {120, 12, 12});
  build.begin_backward();
  const std::vector<partition::NodeIndex> gradients =
      build.multi("native_layer_norm_backward", {tangent, x, norm[1], norm[2], w, b}, {120, 40, 40});
  return build.graph({norm[0]}, gradients);
}

}  // namespace plumbline::testing
