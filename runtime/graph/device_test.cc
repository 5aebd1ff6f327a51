// A graph moved to another device. The other device is meta here, which every build has: a tensor that stays on the
// host is an error in its kernels, or is seen at the outputs.
#include "runtime/graph/device.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "runtime/graph/io/text.h"
#include "runtime/graph/run/program.h"
#include "runtime/graph/testing/parse.h"
#include "runtime/testing/refusal.h"

namespace plumbline::graph {
namespace {

std::vector<at::Tensor> outputs_of(const Graph& graph, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> outputs;
  Program(graph).run(inputs, outputs);
  return outputs;
}

/// All outputs are on meta, with the sizes that they have on the host.
void expect_moved(Graph graph, const std::vector<at::Tensor>& inputs) {
  const std::vector<at::Tensor> host = outputs_of(graph, inputs);
  move_to(graph, c10::kMeta);
  std::vector<at::Tensor> there;
  for (const at::Tensor& input : inputs) there.push_back(input.to(c10::kMeta));
  const std::vector<at::Tensor> moved = outputs_of(graph, there);
  ASSERT_EQ(moved.size(), host.size());
  for (size_t i = 0; i < host.size(); ++i) {
    EXPECT_TRUE(moved[i].is_meta()) << "output " << i << " of\n" << to_text(graph);
    EXPECT_EQ(moved[i].sizes(), host[i].sizes());
    EXPECT_EQ(moved[i].scalar_type(), host[i].scalar_type());
  }
}

TEST(MoveTo, CallsThatMakeTensorsMakeThemThere) {
  expect_moved(parse_graph(R"(input %0: f32[2,4] = "x"
%1: f32[4] = aten::zeros([4], None, None, None, None)
%2: i64[4] = aten::arange(4, None, None, None, None)
%3: f32[4] = aten::full([4], 2.0, 6, 0, device "cpu", False)
%4: f32[2,4] = aten::add.Tensor(%0, %1, 1)
%5: f32[2,4] = aten::mul.Tensor(%4, 3.0)
return %1, %2, %3, %5
)"),
               {at::ones({2, 4})});
}

TEST(MoveTo, CallsThatFollowATensorStillDo) {
  expect_moved(parse_graph(R"(input %0: f32[2,4] = "x"
%1: f32[2,4] = aten::zeros_like(%0, None, None, None, None, None)
%2: f32[3] = aten::new_zeros(%0, [3], None, None, None, None)
%3: f64[2,4] = aten::_to_copy(%0, 7, None, None, None, False, None)
%4: f32[2,4] = aten::_to_copy(%0, None, None, device "cpu", None, False, None)
return %1, %2, %3, %4
)"),
               {at::ones({2, 4})});
}

TEST(MoveTo, ConstantsMoveAndParametersAreLeftToTheirOwner) {
  Graph graph = parse_graph(R"(input %0: f32[2,4] = "x"
parameter %1: f32[4] = "bias"
constant %2: f32[4] = "table"
%3: f32[2,4] = aten::add.Tensor(%0, %1, 1)
%4: f32[2,4] = aten::mul.Tensor(%3, %2)
return %4
)");
  for (Attribute& attribute : graph.attributes) attribute.tensor = at::ones({4});
  move_to(graph, c10::kMeta);
  EXPECT_TRUE(graph.attributes.at(0).tensor.is_cpu());
  EXPECT_TRUE(graph.attributes.at(1).tensor.is_meta());
}

TEST(MoveTo, BranchesMoveAndOtherGraphsKeepTheirs) {
  Graph branch =
      parse_graph("input %0: f32[4] = \"x\"\n%1: f32[4] = aten::ones([4], None, None, None, None)\nreturn %1\n");
  Graph graph = parse_graph("input %0: f32[4] = \"x\"\nreturn %0\n");
  Node node;
  node.op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::zeros", "");
  node.branches = {std::make_shared<const Graph>(branch)};
  graph.nodes.push_back(node);
  Graph moved = graph;
  move_to(moved, c10::kMeta);
  EXPECT_NE(to_text(*moved.nodes[0].branches[0]).find("device \"meta\""), std::string::npos);
  EXPECT_EQ(to_text(*graph.nodes[0].branches[0]), to_text(branch));
}

TEST(MoveTo, RandomStateThatTravelsIsRefused) {
  Graph graph = parse_graph("%0: u8[5056] = plumbline::get_random_state()\nreturn %0\n");
  EXPECT_EQ(testing::refusal([&] { move_to(graph, c10::kMeta); }),
            "device: the model's random state travels with its micro-batches (plumbline::get_random_state), which is "
            "implemented for the CPU's generator only");
}

TEST(OnHost, TensorsOfTheHostStayAndLeavesStayLeaves) {
  const at::Tensor leaf = at::ones({2}).requires_grad_(), plain = at::ones({2});
  const std::vector<at::Tensor> same = on_host({leaf, at::Tensor(), plain});
  EXPECT_TRUE(same[0].is_same(leaf) && !same[1].defined() && same[2].is_same(plain));
}

}  // namespace
}  // namespace plumbline::graph
