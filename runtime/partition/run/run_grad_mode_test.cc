// Kernels that look at the grad mode, under every partition, against the module itself.
#include <gtest/gtest.h>

#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/run/run.h"
#include "runtime/partition/testing/trace_testing.h"

namespace plumbline::partition {
namespace {

/// Of an LSTM layer, whose kernel for inference gives other bits than that for training.
std::shared_ptr<TracedModule> lstm(bool no_grad) {
  return module_of([&](TracedModule& m) {
    const Tensors weights{m.parameter("input", {32, 8}), m.parameter("hidden", {32, 8}),
                          m.parameter("input_bias", {32}), m.parameter("hidden_bias", {32})};
    const at::Tensor out = m.parameter("out", {8, 8});
    m.body = [=](const Tensors& in) {
      const auto layer = [&] {
        const at::Tensor zero = at::zeros({1, 3, 8});
        return std::get<0>(at::lstm(in[0], Tensors{zero, zero}, weights, true, 1, 0.0, true, false, false));
      };
      if (!no_grad) return Tensors{at::linear(layer(), out)};
      at::Tensor states;
      {
        const c10::NoGradGuard guard;
        states = layer();
      }
      return Tensors{at::linear(states, out)};
    };
  });
}

class GradMode : public ::testing::TestWithParam<const char*> {};

TEST_P(GradMode, AnLstmLayerHasTheBitsOfEagerMode) {
  for (const bool no_grad : {true, false}) {
    SCOPED_TRACE(no_grad ? "without gradients" : "with gradients");
    const auto module = lstm(no_grad);
    const at::Tensor x = at::randn({4, 3, 8});
    const graph::Graph graph = capture_of(*module, module->body, {x});
    JointTrace trace = trace_joint(graph, {x});
    PartitionOptions options = parse_partition_mode(GetParam());
    options.static_inputs = trace.static_inputs;
    Partition made = partition(trace.graph, load_policy("torch-2.15"), options);
    PartitionedGraph partitioned(graph, std::move(trace), std::move(made));
    Tensors outputs;
    partitioned.run(Tensors{x}, outputs);
    EXPECT_TRUE(c10::GradMode::is_enabled());
    const at::Tensor expected = module->body({x})[0];
    EXPECT_TRUE(bitwise_equal(outputs[0], expected)) << (outputs[0] - expected).abs().max();
    const auto gradients = [&](const at::Tensor& output) {
      module->zero_grad();
      output.square().sum().backward();
      Tensors found;
      for (const at::Tensor& parameter : module->parameters())
        found.push_back(parameter.grad().defined() ? parameter.grad().clone() : at::Tensor());
      return found;
    };
    const Tensors ours = gradients(outputs[0]), theirs = gradients(expected);
    for (size_t p = 0; p < ours.size(); ++p) {
      ASSERT_EQ(ours[p].defined(), theirs[p].defined()) << p;
      EXPECT_TRUE(!ours[p].defined() || bitwise_equal(ours[p], theirs[p])) << "parameter " << p;
    }
    const c10::NoGradGuard evaluating;
    partitioned.run(Tensors{x}, outputs);
    EXPECT_TRUE(bitwise_equal(outputs[0], module->body({x})[0])) << "in evaluation";
    EXPECT_FALSE(c10::GradMode::is_enabled());
  }
}

INSTANTIATE_TEST_SUITE_P(Run, GradMode, ::testing::Values("default", "min-cut", "bytes", "budget=0"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
                           return name;
                         });

}  // namespace
}  // namespace plumbline::partition
