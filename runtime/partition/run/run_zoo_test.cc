// Every model of the corpus, whole: traced, partitioned in every mode, and run forward and backward, against plain
// autograd on the model itself, bit by bit; the backward whole and in halves.
#include "reference/models/zoo.h"
#include "runtime/backward/split_backward.h"
#include "runtime/partition/run/run.h"
#include "runtime/partition/trace/trace_testing.h"

namespace plumbline {
namespace {

using Named = std::map<std::string, at::Tensor>;

struct Outcome {
  Tensors outputs, input_grads;
  Named grads, buffers;
};

void expect_same(const at::Tensor& ours, const at::Tensor& theirs, const std::string& what) {
  ASSERT_EQ(ours.defined(), theirs.defined()) << what;
  if (ours.defined()) {
    EXPECT_TRUE(bitwise_equal(ours, theirs)) << what;
  }
}

void expect_same(const Outcome& ours, const Outcome& theirs) {
  for (size_t i = 0; i < theirs.outputs.size(); ++i)
    expect_same(ours.outputs[i], theirs.outputs[i], "output " + std::to_string(i));
  for (size_t i = 0; i < theirs.input_grads.size(); ++i)
    expect_same(ours.input_grads[i], theirs.input_grads[i], "gradient of input " + std::to_string(i));
  for (const auto& [name, grad] : theirs.grads) expect_same(ours.grads.at(name), grad, "gradient of " + name);
  for (const auto& [name, buffer] : theirs.buffers) expect_same(ours.buffers.at(name), buffer, name);
}

/// Runs `forward` and a backward from all its outputs, with gradients that are the same each time, and leaves the
/// module as it was.
Outcome outcome_of(torch::nn::Module& module, const Tensors& inputs,
                   const std::function<Tensors(const Tensors&)>& forward, bool halves) {
  Outcome outcome;
  Named before;
  for (const auto& buffer : module.named_buffers()) before[buffer.key()] = buffer.value().clone();
  const Tensors leaves = clones(inputs);
  at::manual_seed(11);
  outcome.outputs = forward(leaves);
  at::manual_seed(12);
  Tensors roots, grads;
  for (const at::Tensor& output : outcome.outputs) {
    if (!output.defined() || !output.requires_grad()) continue;
    roots.push_back(output);
    grads.push_back(at::randn(output.sizes(), output.options().requires_grad(false)));
  }
  if (halves) {
    WeightBackward weights;
    stage_backward_input(roots, grads, leaves, outcome.input_grads, weights, {.accumulate_into_inputs = false});
    stage_backward_weight(weights);
  } else {
    torch::autograd::backward(roots, grads);
    for (const at::Tensor& leaf : leaves) outcome.input_grads.push_back(leaf.grad());
  }
  for (at::Tensor& output : outcome.outputs)
    if (output.defined()) output = output.detach();
  const c10::NoGradGuard no_grad;
  for (const auto& item : module.named_parameters()) {
    outcome.grads[item.key()] = item.value().grad();
    item.value().mutable_grad() = at::Tensor();
  }
  for (const auto& item : module.named_buffers()) {
    outcome.buffers[item.key()] = item.value().clone();
    item.value().copy_(before[item.key()]);
  }
  return outcome;
}

class RunZoo : public ::testing::TestWithParam<std::string> {};

TEST_P(RunZoo, HasTheBitsOfAutogradInEveryMode) {
  const Model model = make_model(GetParam(), Dtype::F32, 3);
  Tensors inputs = make_batch(GetParam(), Dtype::F32, 4, 3, 0).inputs;
  for (at::Tensor& input : inputs)
    if (input.defined() && input.is_floating_point()) input = input.clone().requires_grad_();
  const Outcome eager = outcome_of(*model.module, inputs, model.forward, /*halves=*/false);
  const Graph graph = capture_of(*model.module, model.forward, inputs);
  const JointTrace trace = trace_joint(graph, inputs);
  const Policy policy = load_policy("torch-2.15");
  for (const char* mode : {"default", "min-cut", "aggressive", "bytes", "budget=0.5", "budget=0.1", "budget=0"}) {
    PartitionOptions options = parse_partition_mode(mode);
    options.static_inputs = trace.static_inputs;
    PartitionedGraph partitioned(graph, trace, partition(trace.graph, policy, options));
    const auto run = [&](const Tensors& given) {
      Tensors outputs;
      partitioned.run(given, outputs);
      return outputs;
    };
    // One after the other: nothing of the first run may be left in the second.
    for (const bool halves : {false, true}) {
      SCOPED_TRACE(std::string(mode) + (halves ? ", in halves" : ""));
      expect_same(outcome_of(*model.module, inputs, run, halves), eager);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, RunZoo, ::testing::ValuesIn(model_names()), [](const auto& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
}  // namespace plumbline
