#include "runtime/partition/cut/forced_saves.h"

#include <gtest/gtest.h>

#include "runtime/partition/testing/joint_graph_builder.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using testing::JointGraphBuilder;
using Names = std::vector<std::string>;

/// The names of the nodes tagged MUST_SAVE after force_saves().
Names forced(JointGraph graph) {
  force_saves(graph);
  Names names;
  for (const JointNode& node : graph.nodes)
    if (node.recompute == CheckpointPolicy::MustSave) names.push_back(node.name);
  return names;
}

TEST(ForcedSaves, ResultsOfCollectives) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400);
  const NodeIndex reduce = build.call("_c10d_functional::all_reduce", {x}, 400),
                  wait = build.call("_c10d_functional::wait_tensor", {reduce}, 400);
  const std::vector<NodeIndex> parts = build.multi("_c10d_functional::all_to_all", {wait}, {200, 200});
  const NodeIndex y = build.call("cat", parts, 400);
  EXPECT_EQ(forced(build.graph({y}, {})), (Names{"all_reduce", "wait_tensor", "getitem", "getitem_1"}));
  build.at(reduce).recompute = CheckpointPolicy::MustRecompute;
  EXPECT_EQ(forced(build.graph({y}, {})), (Names{"wait_tensor", "getitem", "getitem_1"}));
}

TEST(ForcedSaves, ResultsOfCallsWithEffects) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400);
  const std::vector<NodeIndex> effect = build.multi("higher_order::with_effects", {x}, {4, 400});
  const NodeIndex y = build.call("cos", {effect[1]}, 400);
  EXPECT_EQ(forced(build.graph({y}, {})), (Names{"getitem", "getitem_1"}));
  build.at(effect[0] - 1).recompute = CheckpointPolicy::MustRecompute;
  EXPECT_EQ(testing::refusal([&] { forced(build.graph({y}, {})); }),
            "partition: 'with_effects' has effects and is tagged MUST_RECOMPUTE; the backward cannot repeat them");
  build.at(effect[0] - 1).mark = JointMark::IsBackward;
  EXPECT_EQ(forced(build.graph({y}, {})), Names{});
}

TEST(ForcedSaves, SourcesOfWhatBothHalvesWrite) {
  JointGraphBuilder build;
  const NodeIndex x = build.primal(400), v = build.primal(400), tangent = build.tangent(400);
  const NodeIndex exp = build.call("exp", {x}, 400), cos = build.call("cos", {v}, 400),
                  mul = build.call("mul", {tangent, x}, 400);
  const NodeIndex write_x = build.call("copy_", {x, exp}, 400), write_v = build.call("copy_", {v, cos}, 400),
                  write_back = build.call("copy_", {x, mul}, 400);
  build.at(write_x).mark = build.at(write_v).mark = JointMark::MustBeInForward;
  build.at(write_back).mark = JointMark::MustBeInBackward;
  EXPECT_EQ(forced(build.graph({write_x, write_v}, {write_back})), (Names{"exp"}));
}

}  // namespace
}  // namespace plumbline::partition
