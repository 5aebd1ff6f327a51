// The random graphs that other tests rely on are well-formed: topological, with storages in range and all gradients.
#include "runtime/partition/testing/random_joint_graph.h"

#include <gtest/gtest.h>

#include <set>

namespace plumbline::testing {
namespace {

TEST(RandomJointGraph, IsValid) {
  int views = 0, tuples = 0, unclaimed = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const partition::JointGraph graph = random_joint_graph(random, {.tags = 0.2});
    std::set<std::string> names;
    std::vector<char> of_tangent(graph.nodes.size(), 0);
    bool calls = false;
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const partition::JointNode& node = graph.nodes[i];
      EXPECT_TRUE(names.insert(node.name).second) << "seed " << seed << ": " << node.name << " occurs twice";
      EXPECT_FALSE(calls && node.is_input()) << "seed " << seed << ": input " << node.name << " after a call";
      calls = calls || !node.is_input();
      of_tangent[i] = node.kind == partition::JointKind::Tangent;
      partition::for_each_input(node, [&](partition::NodeIndex input) {
        ASSERT_LT(input, static_cast<partition::NodeIndex>(i)) << "seed " << seed;
        of_tangent[i] |= of_tangent[input];
      });
      if (node.out.kind == partition::JointResult::Kind::Tensor) {
        ASSERT_GE(node.out.storage, 0);
        ASSERT_LT(node.out.storage, static_cast<int32_t>(graph.storage_bytes.size()));
        EXPECT_LE(node.out.bytes, graph.storage_bytes[node.out.storage]);
      }
      views += node.view;
      tuples += node.multi_output;
      unclaimed += node.mark == partition::JointMark::IsBackward && !of_tangent[i];
    }
    EXPECT_EQ(graph.backward_outputs().size(), 3u);
    for (const partition::NodeIndex output : graph.forward_outputs())
      EXPECT_FALSE(of_tangent[output]) << "seed " << seed;
  }
  EXPECT_GT(views, 300);
  EXPECT_GT(tuples, 300);
  EXPECT_GT(unclaimed, 50);
}

TEST(RandomJointGraph, IsTheSameForTheSameSeed) {
  std::mt19937 one(7), other(7);
  const partition::JointGraph a = random_joint_graph(one), b = random_joint_graph(other);
  ASSERT_EQ(a.nodes.size(), b.nodes.size());
  for (size_t i = 0; i < a.nodes.size(); ++i) EXPECT_EQ(a.nodes[i].name, b.nodes[i].name);
  EXPECT_EQ(a.outputs, b.outputs);
}

}  // namespace
}  // namespace plumbline::testing
