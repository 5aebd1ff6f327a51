#include "runtime/partition/joint/joint_dot.h"

#include <gtest/gtest.h>

#include "runtime/partition/joint/result_text.h"
#include "runtime/partition/parity/joint_graph_file.h"
#include "runtime/partition/testing/golden_files.h"
#include "runtime/partition/testing/recorded_partition.h"
#include "runtime/testing/dot_checker.h"

namespace plumbline::partition {
namespace {

testing::DotPicture read(const std::string& text) { return testing::DotChecker(text).read(); }

std::string id(NodeIndex node) { return "n" + std::to_string(node); }

TEST(JointDot, PicturesOfRecordedPartitionsAreWhole) {
  for (const JointGraphFile& file : golden_files())
    for (const auto& [key, run] : file.runs) {
      if (adds_nodes(run)) continue;
      if (run.statics == "params") continue;
      const Partition partition = recorded_partition(file, run);
      const testing::DotPicture joint = read(to_dot(partition, PartitionPart::Joint));
      EXPECT_EQ(joint.nodes.size(), partition.graph.nodes.size() + 2);
      size_t uses = partition.graph.outputs.size() - std::ranges::count(partition.graph.outputs, kNoNode);
      for (const JointNode& node : partition.graph.nodes) for_each_input(node, [&](NodeIndex) { ++uses; });
      EXPECT_EQ(joint.edges.size(), uses);
      size_t gold = 0, blue = 0;
      for (const auto& [name, attributes] : joint.nodes) {
        gold += attributes.contains("fillcolor") && attributes.at("fillcolor") == "gold";
        blue += attributes.contains("peripheries");
      }
      EXPECT_EQ(gold, run.saved.size() + run.saved_symbols.size());
      EXPECT_EQ(blue, run.recomputed.size());

      const testing::DotPicture forward = read(to_dot(partition, PartitionPart::Forward));
      EXPECT_EQ(forward.nodes.size(), run.forward.in.size() + run.forward.ops.size() + 1);
    }
}

TEST(JointDot, ShowsWhatIsSavedAndWhatRunsTwice) {
  const JointResult out{
      .kind = JointResult::Kind::Tensor, .dtype = types::Dtype::Float32, .shape = {{2, ""}, {3, "s0"}}, .bytes = 24};
  Partition partition;
  JointGraph& graph = partition.graph;
  const auto node = [&](const char* name, JointKind kind, const char* op, std::vector<NodeIndex> inputs) {
    JointNode made{.name = name, .kind = kind, .op = op, .out = out};
    for (const NodeIndex input : inputs) made.args.push_back({.kind = JointArgument::Kind::Node, .node = input});
    graph.nodes.push_back(made);
    return static_cast<NodeIndex>(graph.nodes.size()) - 1;
  };
  const NodeIndex x = node("x", JointKind::Primal, "", {}), dy = node("dy", JointKind::Tangent, "", {});
  const NodeIndex c = node("c", JointKind::GetAttr, "", {});
  const NodeIndex s = node("s", JointKind::Call, "aten::sin", {x}),
                  twice = node("twice", JointKind::Call, "aten::cos", {s, s});
  const NodeIndex y = node("\"y\"", JointKind::Call, "aten::mul", {twice, c});
  const NodeIndex dx = node("dx", JointKind::Call, "aten::mul", {dy, twice});
  const NodeIndex dead = node("dead", JointKind::Call, "aten::neg", {x});
  graph.outputs = {y, dx};
  graph.num_forward_outputs = 1;
  partition.saved = {s};
  partition.forward = {{x}, {c, s, twice, y}, {y, s}};
  partition.backward = {{s, dy}, {twice, dx}, {dx, kNoNode}};

  const testing::DotPicture joint = read(to_dot(partition, PartitionPart::Joint));
  const auto& nodes = joint.nodes;
  EXPECT_EQ(nodes.at(id(x)).at("shape"), "ellipse");
  EXPECT_EQ(nodes.at(id(c)).at("shape"), "note");
  EXPECT_EQ(nodes.at(id(s)).at("fillcolor"), "gold");
  EXPECT_EQ(nodes.at(id(twice)).at("fillcolor"), "lightblue");
  EXPECT_EQ(nodes.at(id(twice)).at("peripheries"), "2");
  EXPECT_EQ(nodes.at(id(y)).at("fillcolor"), "white");
  EXPECT_EQ(nodes.at(id(dx)).at("fillcolor"), "lightgrey");
  EXPECT_EQ(nodes.at(id(dead)).at("style"), "filled,dotted");
  EXPECT_EQ(nodes.at(id(y)).at("label"), "\"y\"\naten::mul\nfloat32[2, s0=3]\n24 bytes");
  EXPECT_EQ(joint.edges.size(), 10U);

  const testing::DotPicture backward = read(to_dot(partition, PartitionPart::Backward));
  EXPECT_EQ(backward.nodes.size(), 5U);
  EXPECT_EQ(backward.nodes.at(id(s)).at("shape"), "ellipse") << "it comes in";
  EXPECT_EQ(backward.nodes.at(id(s)).at("fillcolor"), "gold");
  ASSERT_EQ(backward.edges.size(), 5U);
  EXPECT_EQ(backward.edges.back().to, "backward_outputs");
  EXPECT_EQ(backward.edges.back().attributes.at("label"), "0");
}

TEST(ResultText, SaysWhatANodeGives) {
  const JointResult scalar{.kind = JointResult::Kind::Scalar, .dtype = types::Dtype::Int64, .scalar = {3, "s0"}};
  EXPECT_EQ(result_text({}), "nothing");
  EXPECT_EQ(result_text(scalar), "int s0");
  const JointResult tensor{.kind = JointResult::Kind::Tensor, .dtype = types::Dtype::Bool};
  EXPECT_EQ(result_text({.kind = JointResult::Kind::Tuple, .items = {tensor, scalar, {}}}),
            "(bool[], int s0, nothing)");
}

}  // namespace
}  // namespace plumbline::partition
