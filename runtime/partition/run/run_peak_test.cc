// The memory that a partitioned graph really takes, by the allocator's own count, against what was planned and against
// eager autograd.
#include <ATen/Parallel.h>

#include "runtime/partition/budget/memory.h"
#include "runtime/partition/parity/partition_mode.h"
#include "runtime/partition/parity/policies/policy_file.h"
#include "runtime/partition/run/run.h"
#include "runtime/partition/testing/trace_testing.h"
#include "runtime/testing/allocation_count.h"
#include "runtime/testing/in_full.h"

namespace plumbline::partition {
namespace {

constexpr int64_t kBlocks = 8, kWidth = 128, kTime = 256, kHeads = 8;
const int64_t kBatch = testing::in_full_or_sample(4, 2);

/// Layer norm, attention over eight heads written out, layer norm, gelu between two linear layers; eight times.
std::shared_ptr<TracedModule> transformer() {
  return module_of([](TracedModule& m) {
    struct Block {
      at::Tensor g1, b1, qkv, qkv_b, out, out_b, g2, b2, up, up_b, down, down_b;
    };
    std::vector<Block> blocks;
    for (int64_t i = 0; i < kBlocks; ++i) {
      const auto p = [&](const char* name, at::IntArrayRef shape) {
        return m.parameter(std::string(name) + std::to_string(i), shape);
      };
      constexpr int64_t D = kWidth;
      blocks.push_back({p("g1_", {D}), p("b1_", {D}), p("qkv_", {3 * D, D}), p("qkv_b_", {3 * D}), p("out_", {D, D}),
                        p("out_b_", {D}), p("g2_", {D}), p("b2_", {D}), p("up_", {4 * D, D}), p("up_b_", {4 * D}),
                        p("down_", {D, 4 * D}), p("down_b_", {D})});
    }
    m.body = [=](const Tensors& in) {
      at::Tensor x = in[0];
      for (const Block& b : blocks) {
        const at::Tensor heads = at::linear(at::layer_norm(x, {kWidth}, b.g1, b.b1), b.qkv, b.qkv_b)
                                     .view({kBatch, kTime, 3, kHeads, kWidth / kHeads})
                                     .permute({2, 0, 3, 1, 4});
        const auto parts = heads.unbind(0);
        const at::Tensor weights = at::softmax(at::matmul(parts[0], parts[1].transpose(-2, -1)) * 0.25, -1);
        const at::Tensor mixed = at::matmul(weights, parts[2]).transpose(1, 2).reshape({kBatch, kTime, kWidth});
        x = x + at::linear(mixed, b.out, b.out_b);
        const at::Tensor wide = at::gelu(at::linear(at::layer_norm(x, {kWidth}, b.g2, b.b2), b.up, b.up_b));
        x = x + at::linear(wide, b.down, b.down_b);
      }
      return Tensors{x};
    };
  });
}

struct Measured {
  int64_t peak = 0;
  at::Tensor output;
  std::map<std::string, at::Tensor> grads;
};

/// One forward and backward, from an input that is there already to the gradients of all parameters.
Measured measure(torch::nn::Module& module, const at::Tensor& x, const capture::ForwardFunction& forward) {
  for (const at::Tensor& parameter : module.parameters()) parameter.mutable_grad() = at::Tensor();
  Measured measured;
  {
    const testing::AllocationCount allocated;
    const Tensors outputs = forward({x});
    torch::autograd::backward(outputs, {at::ones_like(outputs[0])});
    measured.output = outputs[0].detach();
    measured.peak = allocated.peak();
  }
  for (const auto& item : module.named_parameters()) measured.grads[item.key()] = item.value().grad();
  return measured;
}

TEST(RunPeak, AnEightBlockTransformerTakesTheMemoryThatWasPlanned) {
  at::set_num_threads(1);
  const auto module = transformer();
  const at::Tensor x = at::randn({kBatch, kTime, kWidth});
  const Measured eager = measure(*module, x, module->body);
  const graph::Graph graph = capture_of(*module, module->body, {x});
  const JointTrace trace = trace_joint(graph, {x});
  for (const char* mode : {"default", "min-cut", "aggressive", "bytes", "budget=0.5", "budget=0.25", "budget=0.1",
                           "budget=0.1:peak", "budget=0:peak"}) {
    SCOPED_TRACE(mode);
    PartitionOptions options = parse_partition_mode(mode);
    options.static_inputs = trace.static_inputs;
    PartitionedGraph partitioned(graph, trace, partition(trace.graph, load_policy("torch-2.15"), options));
    const MemoryProfile planned = simulate_memory(partitioned.partition(), /*overwriting=*/true);
    const Measured ours = measure(*module, x, [&](const Tensors& inputs) {
      Tensors outputs;
      partitioned.run(inputs, outputs);
      return outputs;
    });
    EXPECT_TRUE(bitwise_equal(ours.output, eager.output));
    for (const auto& [name, grad] : eager.grads) EXPECT_TRUE(bitwise_equal(ours.grads.at(name), grad)) << name;
    const auto ratio = [](int64_t a, int64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
    RecordProperty(std::string(mode) + "_planned_over_measured", std::to_string(ratio(planned.peak, ours.peak)));
    RecordProperty(std::string(mode) + "_peak_over_eager", std::to_string(ratio(ours.peak, eager.peak)));
    std::printf("%-12s measured %6lld KiB, planned %6lld KiB (%.3f), of eager %.3f\n", mode,
                static_cast<long long>(ours.peak / 1024), static_cast<long long>(planned.peak / 1024),
                ratio(planned.peak, ours.peak), ratio(ours.peak, eager.peak));
    EXPECT_NEAR(ratio(planned.peak, ours.peak), 1, 0.05);
    if (std::string(mode).starts_with("budget=0.1")) {
      EXPECT_LE(ratio(ours.peak, eager.peak), 0.28);
    }
  }
}

}  // namespace
}  // namespace plumbline::partition
