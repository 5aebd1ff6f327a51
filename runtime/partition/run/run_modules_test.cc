// Small modules, each with something that a partition may get wrong, against plain autograd on the module itself, bit
// by bit, in every mode.
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include "runtime/graph/testing/parse.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/testing/run_testing.h"
#include "runtime/testing/leaf.h"

namespace plumbline::partition {
namespace {

using testing::leaf;

using testing::expect_bits_of_autograd;
using testing::expect_same_bits;
using testing::outcome_of;

const std::vector<const char*> kModes = {"default", "min-cut", "aggressive", "bytes", "budget=0.5", "budget=0"};

void expect_bits(TracedModule& module, const Tensors& inputs, const char* policy = "torch-2.15",
                 const std::function<void(const Partition&)>& tell = {}) {
  expect_bits_of_autograd(module, module.body, inputs, policy, kModes, tell);
}

/// How often `op` runs again.
int64_t recomputed(const Partition& partition, const std::string& op) {
  const std::vector<NodeIndex> again = partition.recomputed();
  return std::count_if(again.begin(), again.end(),
                       [&](NodeIndex node) { return partition.graph.nodes[node].op == op; });
}

/// A fused LSTM layer makes the workspace that its backward reads only in grad mode, which a backward runs without.
TEST(RunModules, AnLstmThatRunsAgainMakesItsWorkspace) {
  const auto module = module_of([](TracedModule& m) {
    Tensors weights;
    for (const std::string layer : {"0", "1"}) {
      for (const char* kind : {"ih", "hh"}) weights.push_back(m.parameter(std::string(kind) + layer, {32, 8}));
      for (const char* kind : {"b_ih", "b_hh"}) weights.push_back(m.parameter(std::string(kind) + layer, {32}));
    }
    m.body = [=](const Tensors& in) {
      const Tensors state = {at::zeros({2, 3, 8}), at::zeros({2, 3, 8})};
      return Tensors{std::get<0>(at::lstm(in[0], state, weights, true, 2, 0.0, true, false, false)).tanh()};
    };
  });
  int64_t again = 0;
  bool fused = false;
  expect_bits(*module, {leaf({4, 3, 8})}, "torch-2.15", [&](const Partition& partition) {
    again += recomputed(partition, "aten::mkldnn_rnn_layer");
    for (const JointNode& node : partition.graph.nodes) fused = fused || node.op == "aten::mkldnn_rnn_layer";
  });
  if (!fused) GTEST_SKIP() << "this LibTorch has no fused LSTM layer";
  EXPECT_GT(again, 0);
}

/// What is saved of a buffer is what it was when it was read: itself, and views of it with and without gaps.
TEST(RunModules, ABufferThatIsSavedAndThenWrittenIsSavedAsItWas) {
  for (const char* policy : {"seed", "torch-2.11", "torch-2.15"}) {
    SCOPED_TRACE(policy);
    const auto module = module_of([](TracedModule& m) {
      const at::Tensor weight = m.parameter("weight", {8, 8}), k = m.register_buffer("k", at::randn({8})),
                       table = m.register_buffer("table", at::randn({8, 8}));
      m.body = [=](const Tensors& in) {
        // Copies, so that eager mode may differentiate; a partition may save what they are copies of.
        const at::Tensor y = at::linear(in[0], weight) * k.clone();
        const at::Tensor gaps = table.slice(1, 0, 8, 2).slice(0, 0, 4).clone();
        const at::Tensor z = at::matmul(y.narrow(1, 0, 4), gaps) * k.view({2, 4})[1].clone();
        {
          const c10::NoGradGuard no_grad;
          k.mul_(0.5).add_(y.detach().mean(0));
          table.add_(1);
        }
        return Tensors{y.sum() + z.sin()};
      };
    });
    int64_t saved_buffers = 0;
    expect_bits(*module, {leaf({3, 8})}, policy, [&](const Partition& partition) {
      std::set<int32_t> written;
      for (const JointNode& node : partition.graph.nodes)
        if (node.epilogue_mutation) written.insert(node.out.storage);
      EXPECT_EQ(written.size(), 2U);
      for (const NodeIndex saved : partition.saved)
        saved_buffers += written.contains(partition.graph.nodes[saved].out.storage);
    });
    // 2.15 saves the copies.
    if (std::string(policy) != "torch-2.15") {
      EXPECT_GT(saved_buffers, 0) << "the test looks at nothing";
    }
  }
}

TEST(RunModules, TensorsWithoutElementsAreTensors) {
  const auto module = module_of([](TracedModule& m) {
    const at::Tensor weight = m.parameter("weight", {8, 8}), none = m.parameter("none", {0, 8});
    m.body = [=](const Tensors& in) {
      const at::Tensor y = at::gelu(at::linear(in[0], weight)), empty = y.narrow(1, 0, 0);
      const at::Tensor nothing = at::linear(y, none).tanh();
      return Tensors{at::cat({y, empty, nothing}, 1) * empty.sum() + y * at::cat({none, y}).mean(), nothing,
                     empty.exp()};
    };
  });
  expect_bits(*module, {leaf({3, 8})});
  expect_bits(*module, {leaf({0, 8})});
}

/// The gradient of a product is made in another way, with other bits, where some factor is zero: the values decide, and
/// they are others than those of the trace.
TEST(RunModules, AProductsGradientLooksAtTheDataAsEagerDoes) {
  const auto module = module_of([](TracedModule& m) {
    const at::Tensor weight = m.parameter("weight", {8, 8});
    m.body = [=](const Tensors& in) {
      const at::Tensor y = at::linear(in[0], weight).cos() * in[1];
      return Tensors{y.prod(1),
                     y.prod(0, true),
                     y.prod(),
                     y.sum().prod(0),
                     y.narrow(0, 0, 1).prod(-2),
                     y.to(at::kHalf).prod(1, false, at::kFloat)};
    };
  });
  const at::Tensor x = at::randn({3, 8});
  const graph::Graph graph = capture_of(*module, module->body, {x.clone().requires_grad_(), at::ones({3, 8})});
  const JointTrace trace = trace_joint(graph, {x.clone().requires_grad_(), at::ones({3, 8})});
  PartitionedGraph partitioned(graph, trace,
                               partition(trace.graph, load_policy("torch-2.15"), parse_partition_mode("budget=0")));
  for (int zeros = 0; zeros <= 3; ++zeros) {
    SCOPED_TRACE(zeros);
    at::Tensor mask = at::ones({3, 8});
    if (zeros > 0) mask[0][1] = 0;
    if (zeros > 1) mask[0][5] = 0;
    if (zeros > 2) mask[2][1] = 0;
    const Tensors inputs = {x.clone().requires_grad_(), mask};
    expect_same_bits(outcome_of(
                         *module, inputs,
                         [&](const Tensors& given) {
                           Tensors outputs;
                           partitioned.run(given, outputs);
                           return outputs;
                         },
                         false),
                     outcome_of(*module, inputs, module->body, false));
  }
}

/// Casts are those of the trace, whatever the caller's autocast is when the graph runs.
TEST(RunModules, AutocastIsThatOfTheTraceAndNotTheCallers) {
  graph::Graph graph = graph::parse_graph(R"(input %0: f32[3,4]* = "x"
parameter %1: f32[4,4]* = "w"
autocast 0 = cpu bf16
%2: bf16[3,4]* = aten::linear(%0, %1, None) autocast 0
%3: bf16[3,4]* = aten::relu(%2) autocast 0
%4: bf16[3,4]* = aten::linear(%3, %1, None) autocast 0
%5: f32[3,4]* = aten::add.Tensor(%4, %0, 1)
%6: f32[3,4]* = aten::linear(%5, %1, None)
return %6
)");
  at::manual_seed(4);
  const at::Tensor w = graph.attributes[0].tensor = leaf({4, 4}), x = leaf({3, 4}), grad = at::randn({3, 4});
  Tensors eager;
  graph::Program(graph).run(Tensors{x}, eager);
  const Tensors wanted = torch::autograd::grad(eager, {w, x}, {grad});
  const JointTrace trace = trace_joint(graph, {x});
  for (const char* mode : kModes) {
    PartitionedGraph partitioned(graph, trace,
                                 partition(trace.graph, load_policy("torch-2.15"), parse_partition_mode(mode)));
    for (const bool callers : {false, true}) {
      SCOPED_TRACE(std::string(mode) + (callers ? ", inside a region of the caller's" : ""));
      at::autocast::set_autocast_enabled(at::kCPU, callers);
      Tensors outputs;
      partitioned.run(Tensors{x}, outputs);
      const Tensors made = torch::autograd::grad(outputs, {w, x}, {grad});
      at::autocast::set_autocast_enabled(at::kCPU, false);
      expect_same_bits(outputs[0], eager[0], "output");
      expect_same_bits(made[0], wanted[0], "gradient of w");
      expect_same_bits(made[1], wanted[1], "gradient of x");
    }
  }
}

}  // namespace
}  // namespace plumbline::partition
