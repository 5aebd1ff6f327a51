// Traces of graphs as they are written, with what the capture of a module in C++ does not make: regions of autocast,
// writes to inputs, branches. The oracle is the captured graph with plain autograd.
#include "runtime/graph/testing/parse.h"
#include "runtime/partition/testing/trace_testing.h"
#include "runtime/testing/refusal.h"

namespace plumbline::partition {
namespace {

at::Tensor weight(at::IntArrayRef shape) { return at::randn(shape).requires_grad_(); }

TEST(TraceGraphs, Autocast) {
  graph::Graph graph = graph::parse_graph(R"(input %0: f32[3,4] = "x"
parameter %1: f32[4,4]* = "w"
autocast 0 = cpu bf16
%2: bf16[3,4]* = aten::linear(%0, %1, None) autocast 0
%3: bf16[3,4]* = aten::linear(%2, %1, None) autocast 0
%4: f32[3,4]* = aten::add.Tensor(%3, %0, 1)
return %4
)");
  at::manual_seed(1);
  graph.attributes[0].tensor = weight({4, 4});
  const JointTrace trace = expect_as_interpreted(graph, {at::randn({3, 4}).requires_grad_()});
  // x, and the weight once for both calls
  EXPECT_EQ(std::count_if(
                trace.graph.nodes.begin(), trace.graph.nodes.end(),
                [](const JointNode& node) { return node.op == "aten::_to_copy" && node.mark == JointMark::IsForward; }),
            2);
}

TEST(TraceGraphs, AWrittenInput) {
  graph::Graph graph = graph::parse_graph(R"(input %0: f32[3,4] = "x"
input %1: f32[3,4] = "history"
parameter %2: f32[4,4]* = "w"
%3: f32[3,4]* = aten::linear(%0, %2, None)
%4: f32[3,4] = aten::detach(%3)
%5: f32[3,4] = aten::add_.Tensor(%1, %4, 2)
%6: f32[3,4]* = aten::mul.Tensor(%3, %5)
return %6
)");
  at::manual_seed(2);
  graph.attributes[0].tensor = weight({4, 4});
  const JointTrace trace = expect_as_interpreted(graph, {at::randn({3, 4}), at::randn({3, 4})});
  EXPECT_EQ(trace.written, (std::vector<int>{2}));
}

TEST(TraceGraphs, AParameterThatTheForwardRenormalises) {
  graph::Graph graph = graph::parse_graph(R"(input %0: i64[5] = "ids"
parameter %1: f32[6,4]* = "table"
%2: f32[6,4]* = aten::embedding_renorm_(%1, %0, 0.5, 2.0) no_grad
%3: f32[5,4]* = aten::embedding(%2, %0, -1, False, False)
return %3
)");
  at::manual_seed(3);
  graph.attributes[0].tensor = weight({6, 4});
  const JointTrace trace = expect_as_interpreted(graph, {at::tensor({1, 3, 3, 0, 5}, at::kLong)});
  EXPECT_EQ(trace.written, (std::vector<int>{0}));
}

TEST(TraceGraphs, GradientsAreWantedWhereTheCallerRecordsNone) {
  graph::Graph graph = graph::parse_graph(R"(input %0: f32[3,4] = "x"
parameter %1: f32[4,4]* = "w"
%2: f32[3,4]* = aten::linear(%0, %1, None)
return %2
)");
  graph.attributes[0].tensor = weight({4, 4});
  const c10::NoGradGuard no_grad;
  const JointTrace trace = trace_joint(graph, {at::ones({3, 4})});
  EXPECT_EQ(trace.tangent_of, (std::vector<int>{0}));
  EXPECT_FALSE(c10::GradMode::is_enabled());
}

TEST(TraceGraphs, RefusesABranchOnData) {
  const graph::Graph graph = graph::parse_graph(R"(input %0: f32[3] = "x"
%1: f32[] = aten::sum(%0, None)
%2: bool[] = aten::gt.Scalar(%1, 0)
[%3: f32[3]] = plumbline::cond(%2, [%0])
then {
  input %0: f32[3] = "a"
  return %0
}
else {
  input %0: f32[3] = "a"
  %1: f32[3] = aten::neg(%0)
  return %1
}
return %3
)");
  const std::string why = testing::refusal([&] { trace_joint(graph, {at::ones({3})}); });
  testing::expect_part(why, "plumbline::cond");
  testing::expect_part(why, "it reads a number from a tensor");
  EXPECT_EQ(std::count(why.begin(), why.end(), '\n'), 0) << why;
}

TEST(TraceGraphs, RefusesANumberAsInput) {
  const graph::Graph graph = graph::parse_graph(
      "input %0: f32[3] = \"x\"\ninput %1: int = \"n\"\n%2: f32[3] = aten::mul.Scalar(%0, %1)\nreturn %2\n");
  testing::expect_part(testing::refusal([&] { trace_joint(graph, {at::ones({3}), at::scalar_tensor(2)}); }),
                       "input \"n\" is a number");
}

}  // namespace
}  // namespace plumbline::partition
