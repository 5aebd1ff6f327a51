#include "runtime/partition/joint/joint_graph.h"

#include <gtest/gtest.h>

#include "runtime/partition/testing/arguments.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

using Argument = JointArgument::Kind;

using testing::node;
using testing::number;

/// primal x; (a, b) = split(x); first = a; y = cat([a, x]) -> y, and x's gradient is None.
JointGraph example() {
  JointGraph graph;
  JointResult tensor{.kind = JointResult::Kind::Tensor,
                     .dtype = types::Dtype::Float32,
                     .shape = {{4, ""}},
                     .strides = {{1, ""}},
                     .bytes = 16,
                     .storage = 0};
  graph.nodes.push_back({.name = "x", .kind = JointKind::Primal, .out = tensor});
  graph.nodes.push_back({.name = "split",
                         .multi_output = true,
                         .op = "aten::split",
                         .args = {node(0), number(2)},
                         .out = {.kind = JointResult::Kind::Tuple, .items = {tensor, tensor}}});
  graph.nodes.push_back({.name = "first",
                         .kind = JointKind::GetItem,
                         .op = "operator::getitem",
                         .args = {node(1), number(0)},
                         .out = tensor});
  graph.nodes.push_back({.name = "y",
                         .op = "aten::cat",
                         .args = {{.kind = Argument::List, .items = {node(2), node(0), node(2)}}},
                         .kwargs = {{"out", node(0)}},
                         .out = tensor});
  graph.outputs = {3, kNoNode};
  graph.num_forward_outputs = 1;
  graph.storage_bytes = {16};
  return graph;
}

template <class Break>
std::string broken(Break&& change) {
  JointGraph graph = example();
  change(graph);
  return testing::refusal([&] { verify(graph); });
}

TEST(JointGraph, EdgesNameEachPairOnce) {
  const JointEdges edges = edges_of(example());
  const auto list = [](std::span<const NodeIndex> nodes) { return std::vector<NodeIndex>(nodes.begin(), nodes.end()); };
  using Nodes = std::vector<NodeIndex>;
  EXPECT_EQ(list(edges.inputs(3)), (Nodes{2, 0}));
  EXPECT_EQ(list(edges.inputs(0)), Nodes{});
  EXPECT_EQ(list(edges.users(0)), (Nodes{1, 3}));
  EXPECT_EQ(list(edges.users(2)), Nodes{3});
  EXPECT_EQ(edges.is_output, (std::vector<char>{0, 0, 0, 1}));
  EXPECT_EQ(edges.direct, (std::vector<char>{1, 1, 1, 0}));  // y reads a list, and a keyword
}

TEST(JointGraph, MoreBytesThanSumsHoldAreRefused) {
  constexpr int64_t kMost = int64_t{1} << 60;
  EXPECT_EQ(broken([](JointGraph& g) { g.storage_bytes = {16, kMost - 16}; }), "accepted");
  EXPECT_EQ(broken([](JointGraph& g) { g.storage_bytes = {16, kMost - 15}; }),
            "storage 1 of 1152921504606846961 bytes brings all storages above 2^60 bytes, expected at most so many");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[2].out.bytes = kMost; }),
            "node 'first' brings the bytes of all results above 2^60, expected at most so many");
}

TEST(JointGraph, VerifyNamesTheNode) {
  EXPECT_EQ(broken([](JointGraph&) {}), "accepted");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[2].name = "x"; }),
            "node 'x' stands twice, expected a name of its own for each node");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[1].name.clear(); }), "node 1 has no name");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[1].out = {}; }),
            "node 'split' is said to give several results, and its result is no tuple");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[1].args[0] = node(9); }),
            "node 'split' reads node 9, which does not exist");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[1].args[0] = node(-1); }),
            "node 'split' reads node -1, which does not exist");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[1].args[0] = node(3); }),
            "node 'split' reads 'y', which does not come before it: the order must be topological");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[3].args[0].items[1] = node(3); }),
            "node 'y' reads 'y', which does not come before it: the order must be topological");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes.push_back({.name = "t", .kind = JointKind::Tangent}); }),
            "node 't' is an input and comes after 'split', expected inputs before everything else");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[2].args[0] = node(0); }),
            "node 'first' takes a result of 'x', which is no call of several results");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[2].args[1] = number(2); }),
            "node 'first' takes result 2 of 'split', which has 2, counted from 0");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[2].args.pop_back(); }),
            "node 'first' is a getitem, whose arguments must be a node and the number of its result");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[3].aliases_input = 1; }),
            "node 'y' aliases an input that does not exist");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[1].out.items[1].storage = 1; }),
            "node 'split' lies in storage 1, expected one of the 1 of the graph, or -1");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[3].out.strides.clear(); }),
            "node 'y' has 1 sizes and 0 strides, expected one stride for each size");
  EXPECT_EQ(broken([](JointGraph& g) { g.nodes[3].out.bytes = -4; }), "node 'y' has -4 bytes, expected 0 or more");
  EXPECT_EQ(broken([](JointGraph& g) { g.outputs[0] = 4; }), "an output is node 4, which does not exist");
  EXPECT_EQ(broken([](JointGraph& g) { g.num_forward_outputs = 3; }),
            "3 outputs are said to be the forward's, expected 0 to 2, all that there are");
  EXPECT_EQ(broken([](JointGraph& g) { g.storage_bytes[0] = -1; }), "storage 0 has -1 bytes, expected 0 or more");
}

}  // namespace
}  // namespace plumbline::partition
