#include "runtime/engine/stage/stage_trace.h"

#include "runtime/engine/stage/partitioned_stage.h"
#include "runtime/graph/run/random_turn.h"
#include "runtime/partition/run/run.h"
#include "runtime/partition/testing/trace_testing.h"
#include "runtime/testing/refusal.h"

namespace plumbline::engine {
namespace {

using M = partition::TracedModule;

std::vector<int64_t> strides_of(const partition::JointNode& node) {
  std::vector<int64_t> strides;
  for (const partition::Extent& stride : node.out.strides) strides.push_back(stride.value);
  return strides;
}

/// Kernels that refuse zeros, or values that are no probabilities.
TEST(StageTrace, IsMadeOnNumbersThatKernelsTake) {
  const auto module = partition::module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {4, 4});
    m.body = [=](const partition::Tensors& in) {
      return partition::Tensors{at::linear(at::linalg_inv(in[0]), w),
                                at::binary_cross_entropy(at::sigmoid(w), in[1]),
                                at::embedding(w, in[2]),
                                at::bernoulli(in[1]) * w,
                                in[3].to(at::kFloat) * w,
                                at::real(in[4]) * w};
    };
  });
  const partition::Tensors inputs{at::eye(4), at::full({4, 4}, 0.5), at::tensor({1, 3}, at::kLong),
                                  at::ones({4}, at::kBool), at::ones({4}, at::kComplexFloat)};
  const graph::Graph graph = partition::capture_of(*module, module->body, inputs);
  const at::Tensor state = graph::random_state();
  const partition::JointTrace once = trace_stage(graph, std::vector<char>(6, 1)),
                              again = trace_stage(graph, std::vector<char>(6, 1));
  EXPECT_TRUE(at::equal(graph::random_state(), state));
  ASSERT_EQ(once.graph.nodes.size(), again.graph.nodes.size());
  for (size_t i = 0; i < once.graph.nodes.size(); ++i) EXPECT_EQ(once.graph.nodes[i].name, again.graph.nodes[i].name);
}

TEST(StageTrace, TakesTheStridesOfTheInputsWithTheirGaps) {
  const auto module = partition::module_of(
      [](M& m) { m.body = [](const partition::Tensors& in) { return partition::Tensors{in[0] * in[1] * in[2]}; }; });
  const partition::Tensors inputs{at::rand({2, 5, 4}).narrow(1, 1, 3), at::rand({4}).expand({3, 4}),
                                  at::rand({2, 3, 4})};
  const graph::Graph graph = partition::capture_of(*module, module->body, inputs);
  const partition::JointTrace trace = trace_stage(graph, {1}, inputs), contiguous = trace_stage(graph, {1});
  for (size_t p = 0; p < inputs.size(); ++p) {
    EXPECT_EQ(strides_of(trace.graph.nodes[p]), inputs[p].strides().vec());
    EXPECT_EQ(strides_of(contiguous.graph.nodes[p]), inputs[p].contiguous().strides().vec());
  }
}

/// In bfloat16 a linear layer adds its bias to the rounded product if its input has gaps, and before rounding
/// otherwise.
TEST(StageTrace, ALinearLayerOnChunksOfTheSecondDimensionHasTheBitsOfEagerMode) {
  const auto module = partition::module_of([](M& m) {
    const at::Tensor w = m.register_parameter("w", at::randn({16, 16}).to(at::kBFloat16)),
                     b = m.register_parameter("b", at::randn({16}).to(at::kBFloat16));
    m.body = [=](const partition::Tensors& in) { return partition::Tensors{at::linear(in[0], w, b)}; };
  });
  const at::Tensor whole = at::randn({4, 6, 16}).to(at::kBFloat16), chunk = whole.narrow(1, 2, 2);
  const graph::Graph graph = partition::capture_of(*module, module->body, {chunk});
  PartitionedStage stage(0, {&graph}, {{1}}, {"default"});
  for (const at::Tensor& x : {chunk, chunk.contiguous(), chunk}) {
    partition::Tensors outputs;
    stage.of(0, partition::Tensors{x})->run(partition::Tensors{x}, outputs);
    EXPECT_TRUE(partition::bitwise_equal(outputs[0], module->body({x})[0])) << x.strides();
  }
  EXPECT_FALSE(partition::bitwise_equal(module->body({chunk})[0], module->body({chunk.contiguous()})[0]))
      << "this test is in vain";
}

TEST(StageTrace, AnOutputThatNeedsAGradientOnlyNowIsRefused) {
  const auto module = partition::module_of([](M& m) {
    const at::Tensor w = m.parameter("w", {4});
    w.requires_grad_(false);
    m.body = [=](const partition::Tensors& in) { return partition::Tensors{in[0] * w}; };
  });
  const graph::Graph graph = partition::capture_of(*module, module->body, {at::rand({4})});
  EXPECT_TRUE(trace_stage(graph, {0}).tangent_of.empty());
  module->parameters()[0].requires_grad_(true);
  testing::expect_part(testing::refusal([&] { trace_stage(graph, {0}); }),
                       "its output 0 needed no gradient when the stages were cut");
}

}  // namespace
}  // namespace plumbline::engine
