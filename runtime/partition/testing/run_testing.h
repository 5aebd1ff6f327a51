// Shared by the tests of partitioned graphs: runs a module forward and backward, by plain autograd or partitioned, and
// compares all results bit by bit.
#pragma once

#include <algorithm>

#include "runtime/backward/split/split_backward.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/run/run.h"
#include "runtime/partition/testing/trace_testing.h"

namespace plumbline::testing {

using Named = std::map<std::string, at::Tensor>;

struct Outcome {
  partition::Tensors outputs, input_grads;
  Named grads, buffers;
};

/// Bit by bit: a zero's sign counts, and a NaN equals itself.
inline void expect_same_bits(const at::Tensor& ours, const at::Tensor& theirs, const std::string& what) {
  ASSERT_EQ(ours.defined(), theirs.defined()) << what;
  if (ours.defined()) {
    EXPECT_TRUE(partition::bitwise_equal(ours, theirs)) << what << "\n" << ours << theirs;
  }
}

inline void expect_same_bits(const Outcome& ours, const Outcome& theirs) {
  for (size_t i = 0; i < theirs.outputs.size(); ++i)
    expect_same_bits(ours.outputs[i], theirs.outputs[i], "output " + std::to_string(i));
  for (size_t i = 0; i < theirs.input_grads.size(); ++i)
    expect_same_bits(ours.input_grads[i], theirs.input_grads[i], "gradient of input " + std::to_string(i));
  for (const auto& [name, grad] : theirs.grads) expect_same_bits(ours.grads.at(name), grad, "gradient of " + name);
  for (const auto& [name, buffer] : theirs.buffers) expect_same_bits(ours.buffers.at(name), buffer, name);
}

/// Runs `forward` and a backward from all its outputs, with the same output gradients each time, and restores the
/// module afterwards.
inline Outcome outcome_of(torch::nn::Module& module, const partition::Tensors& inputs,
                          const capture::ForwardFunction& forward, bool halves) {
  Outcome outcome;
  Named before;
  for (const auto& buffer : module.named_buffers()) before[buffer.key()] = buffer.value().clone();
  const partition::Tensors leaves = partition::clones(inputs);
  at::manual_seed(11);
  outcome.outputs = forward(leaves);
  at::manual_seed(12);
  partition::Tensors roots, grads;
  for (const at::Tensor& output : outcome.outputs) {
    if (!output.defined() || !output.requires_grad()) continue;
    roots.push_back(output);
    grads.push_back(at::randn(output.sizes(), output.options().requires_grad(false)));
  }
  if (halves) {
    backward::WeightBackward weights;
    backward::stage_backward_input(roots, grads, leaves, outcome.input_grads, weights,
                                   {.accumulate_into_inputs = false});
    backward::stage_backward_weight(weights);
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

/// Partitions a trace of `module` in each of `modes` by `policy`, runs each forward and backward, whole and in halves,
/// and expects the same bits as plain autograd on the module. Calls `tell` with each partition.
inline void expect_bits_of_autograd(torch::nn::Module& module, const capture::ForwardFunction& forward,
                                    const partition::Tensors& inputs, const char* policy,
                                    const std::vector<const char*>& modes,
                                    const std::function<void(const partition::Partition&)>& tell = {}) {
  const Outcome eager = outcome_of(module, inputs, forward, /*halves=*/false);
  const graph::Graph graph = partition::capture_of(module, forward, inputs);
  const partition::JointTrace trace = partition::trace_joint(graph, inputs);
  for (const char* mode : modes) {
    partition::PartitionOptions options = partition::parse_partition_mode(mode);
    options.static_inputs = trace.static_inputs;
    partition::PartitionedGraph partitioned(graph, trace,
                                            partition::partition(trace.graph, partition::load_policy(policy), options));
    if (tell) tell(partitioned.partition());
    const auto run = [&](const partition::Tensors& given) {
      partition::Tensors outputs;
      partitioned.run(given, outputs);
      return outputs;
    };
    // Both runs in sequence: the first must leave no state that affects the second.
    for (const bool halves : {false, true}) {
      SCOPED_TRACE(std::string(mode) + ", " + policy + (halves ? ", in halves" : ""));
      expect_same_bits(outcome_of(module, inputs, run, halves), eager);
    }
  }
}

}  // namespace plumbline::testing
