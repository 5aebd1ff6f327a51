#include "runtime/graph/dot.h"

#include <gtest/gtest.h>

#include "runtime/graph/text.h"
#include "runtime/testing/dot_checker.h"
#include "runtime/testing/random_graph.h"

namespace plumbline::graph {
namespace {

std::vector<std::string> edges_of(const testing::DotPicture& picture) {
  std::vector<std::string> edges;
  for (const testing::DotEdge& edge : picture.edges) {
    const auto label = edge.attributes.find("label");
    edges.push_back(edge.from + ">" + edge.to + (label == edge.attributes.end() ? "" : ":" + label->second));
  }
  std::ranges::sort(edges);
  return edges;
}

TEST(Dot, CallsLeavesAndModules) {
  const Graph graph = parse_graph(R"(input %0: f32[4,8] = "x \"quoted\" \\"
parameter %1: f32[8,8]* = "fc.weight"
parameter = "unused"
%2: f32[4,8]* = aten::matmul(%0, %1)
[%3: f32[2,8]*, %4: f32[2,8]*] = aten::split.Tensor(%2, 2, 0)
pipe_split
%5: f32[2,8]* = aten::add.Tensor(%3, %3, 1)
return %5, None, %0
module "" "Root" 0 4
module "fc" "Linear" 0 1
module "empty" "Empty" 1 1
module "head" "Head" 1 4
module "head.split" "Split" 1 2
)");
  const testing::DotPicture picture = testing::DotChecker(to_dot(graph)).read();
  EXPECT_EQ(picture.nodes.at("call0").at("label"), "aten::matmul\nf32[4,8]*");
  EXPECT_EQ(picture.nodes.at("call1").at("label"), "aten::split.Tensor\nf32[2,8]*\nf32[2,8]*");
  EXPECT_EQ(picture.nodes.at("call2").at("label"), "pipe_split");
  EXPECT_EQ(picture.nodes.at("input0").at("label"), "x \"quoted\" \\\nf32[4,8]");
  EXPECT_EQ(picture.nodes.at("input0").at("shape"), "ellipse");
  EXPECT_EQ(picture.nodes.at("attribute0").at("shape"), "note");
  EXPECT_EQ(picture.nodes.size(), 7u) << "four calls, an input, the used parameter, the outputs";
  EXPECT_EQ(edges_of(picture),
            (std::vector<std::string>{"attribute0>call0", "call0>call1", "call1>call3", "call1>call3",
                                      "call3>outputs:0", "input0>call0", "input0>outputs:2"}));
  EXPECT_EQ(picture.members.at("cluster_module1"), std::vector<std::string>{"call0"});
  EXPECT_EQ(picture.subgraphs.at("cluster_module1").at("label"), "fc (Linear)");
  EXPECT_EQ(picture.members.at("cluster_module3"), (std::vector<std::string>{"call2", "call3"}));
  EXPECT_EQ(picture.members.at("cluster_module4"), std::vector<std::string>{"call1"});
  EXPECT_FALSE(picture.subgraphs.contains("cluster_module2"));
}

TEST(Dot, BranchesAreFramesOfTheirOwn) {
  const Graph graph = parse_graph(R"(input %0: bool[] = "p"
input %1: f32[2] = "x"
[%2: f32[2]] = plumbline::cond(%0, [%1])
then {
  input %0: f32[2] = "a"
  %1: f32[2] = aten::relu(%0)
  return %1
}
else {
  input %0: f32[2] = "b"
  return %0
}
return %2
)");
  const testing::DotPicture picture = testing::DotChecker(to_dot(graph)).read();
  EXPECT_EQ(picture.members.at("cluster_call0then"),
            (std::vector<std::string>{"call0_then_input0", "call0_then_call0", "call0_then_outputs"}));
  EXPECT_EQ(picture.members.at("cluster_call0else"),
            (std::vector<std::string>{"call0_else_input0", "call0_else_outputs"}));
}

TEST(Dot, AnyGraphIsWellFormed) {
  const unsigned first = std::random_device{}();
  for (unsigned seed = first; seed < first + 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_NO_THROW(testing::DotChecker(to_dot(testing::RandomGraph(seed).make())).read());
  }
}

}  // namespace
}  // namespace plumbline::graph
