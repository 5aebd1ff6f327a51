#include "runtime/partition/cut/classify.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/joint_graph_builder.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;
constexpr int32_t kFar = kFarFromBackward;

NodeClasses classify(const JointGraph& graph, const std::string& name, const std::vector<int>& statics = {}) {
  const Policy policy = load_policy(name);
  return classify_nodes(graph, edges_of(graph), policy, classify_ops(graph, policy), statics);
}

/// The names of the marked nodes.
std::vector<std::string> marked(const JointGraph& graph, const std::vector<char>& marks) {
  std::vector<std::string> names;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (marks[i]) names.push_back(graph.nodes[i].name);
  return names;
}
using Names = std::vector<std::string>;

/// cos(mm(x, w)) and its backward; the gradient of the third primal is a forward value, that of the fourth the primal
/// itself.
JointGraph classified_example() {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), w = build.primal(64), y = build.primal(64), z = build.primal(64),
                  tangent = build.tangent(64);
  const NodeIndex mm = build.call("mm", {x, w}, 64), cos = build.call("cos", {mm}, 64),
                  exp = build.call("exp", {y}, 64);
  const NodeIndex dropped = build.call("relu", {x}, 64);
  build.begin_backward();
  const NodeIndex sin = build.call("sin", {mm}, 64), mul = build.call("mul", {tangent, sin}, 64);
  const NodeIndex to_x = build.call("mm", {mul, w}, 64), to_w = build.call("mm", {x, mul}, 64);
  (void)dropped;
  return build.graph({cos, exp}, {to_x, to_w, exp, z});
}

TEST(Classify, WhatEachHalfNeeds) {
  const JointGraph graph = classified_example();
  const NodeClasses classes = classify(graph, "torch-2.15", {1, 3});
  EXPECT_EQ(marked(graph, classes.required_forward),
            (Names{"primals_1", "primals_2", "primals_3", "primals_4", "mm", "cos", "exp"}));
  EXPECT_EQ(marked(graph, classes.required_backward), (Names{"primals_4", "tangents_1", "exp", "mul", "mm_1", "mm_2"}));
  EXPECT_EQ(marked(graph, classes.tangents_closure), (Names{"tangents_1", "mul", "mm_1", "mm_2"}));
  EXPECT_EQ(marked(graph, classes.is_static), (Names{"primals_2", "primals_4"}));
  //                                              x  w  y  z  t  mm cos exp relu sin mul mm mm
  EXPECT_EQ(classes.forward_order, (std::vector{0, 1, 2, 3, -1, 4, 5, 6, -1, -1, -1, -1, -1}));
  EXPECT_EQ(classes.distance_to_backward, (std::vector{1, 1, kFar, kFar, 0, 1, kFar, kFar, 0, 0, 0, 0, 0}));
}

TEST(Classify, TheSeedCountsOutputsAsBackwardAndComputesReturnedValuesThere) {
  const JointGraph graph = classified_example();
  const NodeClasses classes = classify(graph, "seed");
  EXPECT_EQ(marked(graph, classes.tangents_closure), (Names{"tangents_1", "exp", "mul", "mm_1", "mm_2"}));
  EXPECT_EQ(classes.distance_to_backward, (std::vector{1, 1, 2, 1, 0, 1, 1, 1, 0, 0, 0, 0, 0}));
}

TEST(Classify, MarksAndMutationsStayInTheirHalf) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex cos = build.call("cos", {x}, 64), exp = build.call("exp", {x}, 64);
  build.begin_backward();
  const NodeIndex mul = build.call("mul", {tangent, cos}, 64), copy = build.call("copy_", {x, exp}, 64);
  build.at(copy).writes = true;
  build.at(exp).mark = JointMark::MustBeInBackward;
  const JointGraph graph = build.graph({cos, copy}, {mul});
  const NodeClasses classes = classify(graph, "torch-2.15");
  EXPECT_EQ(marked(graph, classes.required_backward), (Names{"tangents_1", "exp", "mul", "copy_"}));
  EXPECT_EQ(marked(graph, classes.required_forward), (Names{"primals_1", "cos"}));  // x replaces the copy into it
  EXPECT_EQ(marked(graph, classify(graph, "seed").required_forward), (Names{"primals_1", "cos", "exp", "copy_"}));
}

TEST(Classify, DeadCallsWithEffectsStayInTheForwardAndRandomOnesDoNot) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64);
  const NodeIndex cos = build.call("cos", {x}, 64), random = build.call("rand_like", {build.call("exp", {x}, 64)}, 64);
  const NodeIndex print = build.call("my::print", {build.call("neg", {x}, 64)}, 64);
  build.at(print).impure = true;
  const JointGraph graph = build.graph({cos}, {build.call("mul", {tangent, random}, 64)});
  EXPECT_EQ(marked(graph, classify(graph, "torch-2.15").required_forward), (Names{"primals_1", "cos", "neg", "print"}));
}

TEST(Classify, RefusesAForwardOutputThatNeedsATangent) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(64), tangent = build.tangent(64), mul = build.call("mul", {tangent, x}, 64);
  const JointGraph graph = build.graph({mul}, {mul});
  EXPECT_EQ(testing::refusal([&] { classify(graph, "torch-2.15"); }),
            "forward output 'mul' cannot be computed in the forward: it needs a tangent, or is marked as part of the "
            "backward");
}

}  // namespace
}  // namespace plumbline::partition
