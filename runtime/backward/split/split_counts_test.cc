// Compares counts, not times: operators and bytes of I and W together with those of the full backward.
#include <ATen/Parallel.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <gtest/gtest.h>

#include <set>

#include "runtime/backward/testing/backward_test_models.h"
#include "runtime/capture/interpose.h"

namespace plumbline::backward {
namespace {

using namespace backward_test;
using CallCounts = std::map<std::string, int>;

// --- operators ---------------------------------------------------------------------------------------------------

/// Counts operator calls that compute; pure changes of shape are free. A convolution's backward counts once for each
/// requested gradient.
class Counter : public capture::Interposer {
 public:
  void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) override {
    // Without aten::, in place or not: gradients kept for the second half are not added to in place.
    std::string name = op.schema().name().substr(6);
    if (name.ends_with('_')) name.pop_back();
    if (name == "convolution_backward") {
      const c10::List<bool> wanted = stack->back().toBoolList();
      calls["convolution_backward, input"] += wanted.get(0);
      calls["convolution_backward, weight"] += wanted.get(1);
    } else if (!kForms.contains(name)) {
      ++calls[name];
    }
    op.callBoxed(stack);
  }
  CallCounts calls;

 private:
  static inline const std::set<std::string> kForms = {
      "t",      "transpose", "permute", "view",       "_unsafe_view", "expand",  "detach",         "alias",
      "select", "slice",     "split",   "as_strided", "unsqueeze",    "squeeze", "_reshape_alias", "unbind"};
};

template <class Call>
CallCounts counted(Call&& call) {
  Counter counter;
  const capture::InterposerScope scope(counter);
  call();
  return counter.calls;
}

struct Counts {
  CallCounts full, input_half, weight_half;
  CallCounts both() const {
    CallCounts sum = input_half;
    for (const auto& [name, count] : weight_half) sum[name] += count;
    return sum;
  }
};
Counts counts_of(const BuildStage& make) {
  Counts counts;
  const Stage whole = build(make, at::kFloat), halved = build(make, at::kFloat);
  for (int m = 0; m < 2; ++m) {  // the second micro-batch adds to existing gradients
    const MicroBatch one = forward(whole, m), other = forward(halved, m);
    counts.full = counted([&] { full_backward(one); });
    WeightBackward weights;
    Tensors input_grads;
    counts.input_half =
        counted([&] { stage_backward_input(other.outputs, other.root_grads, other.inputs, input_grads, weights); });
    counts.weight_half = counted([&] { stage_backward_weight(weights); });
  }
  return counts;
}
Stage mlp_of_four(at::ScalarType dtype) { return mlp(dtype); }
Stage two_blocks(at::ScalarType dtype) { return transformer(dtype, 2, 5, 8, 2, 2); }
Stage three_convolutions(at::ScalarType dtype) { return convolutions(dtype); }

TEST(SplitCounts, NoOperatorRunsTwice) {
  for (const BuildStage& make : {BuildStage(mlp_of_four), BuildStage(two_blocks), BuildStage(tied_transformer),
                                 BuildStage(three_convolutions)}) {
    const Counts counts = counts_of(make);
    EXPECT_FALSE(counts.full.empty());
    EXPECT_EQ(counts.full, counts.both());
  }
}

/// Half of the products of an MLP, and all of the weights' products, are in the second half.
TEST(SplitCounts, TheWorkIsDividedInTwo) {
  const Counts linears = counts_of(mlp_of_four);
  EXPECT_EQ(linears.full.at("mm"), 8);
  EXPECT_EQ(linears.input_half.at("mm"), 4);
  EXPECT_EQ(linears.weight_half.at("mm"), 4);
  const Counts blocks = counts_of(two_blocks);
  EXPECT_EQ(blocks.full.at("mm"), 16);
  EXPECT_EQ(blocks.input_half.at("mm"), 8);
  EXPECT_EQ(blocks.weight_half.at("mm"), 8);
  EXPECT_EQ(blocks.input_half.at("native_layer_norm_backward"), 4);
  EXPECT_EQ(blocks.weight_half.count("native_layer_norm_backward"), 0u);
  const Counts tied = counts_of(tied_transformer);
  EXPECT_EQ(tied.full.at("mm"), 22);
  EXPECT_EQ(tied.input_half.at("mm") + tied.weight_half.at("mm"), 22);
  const Counts convolved = counts_of(three_convolutions);
  EXPECT_EQ(convolved.input_half.at("convolution_backward, input"), 3);
  EXPECT_EQ(convolved.input_half.at("convolution_backward, weight"), 0);
  EXPECT_EQ(convolved.weight_half.at("convolution_backward, input"), 0);
  EXPECT_EQ(convolved.weight_half.at("convolution_backward, weight"), 3);
}

// --- bytes -------------------------------------------------------------------------------------------------------

/// This thread's live CPU bytes and their peak.
class LiveBytes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t size, size_t, size_t, c10::Device) override {
    now += size;
    peak = std::max(peak, now);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t now = 0, peak = 0;
};

struct Footprint {
  double after_forward = 0, between = 0, peak_input_half = 0, peak = 0, after = 0;  // MiB
};
/// One micro-batch, without the gradient of its output (it is the next stage's). On one thread: operators have buffers
/// for each.
Footprint footprint(const BuildStage& make, bool in_halves) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Stage stage = build(make, at::kFloat);
  at::manual_seed(1);
  const Tensors sizes = stage.forward(stage.inputs());
  const Tensors grads = {at::randn(sizes[0].sizes())};
  const auto bytes = std::make_shared<LiveBytes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, bytes);
  const auto mib = [](int64_t count) { return static_cast<double>(count) / (1 << 20); };
  Footprint seen;
  const Tensors inputs = stage.inputs(), outputs = stage.forward(inputs);
  seen.after_forward = mib(bytes->now);
  bytes->peak = 0;
  if (in_halves) {
    WeightBackward weights;
    Tensors input_grads;
    stage_backward_input(outputs, grads, inputs, input_grads, weights);
    seen.between = mib(bytes->now), seen.peak_input_half = mib(bytes->peak);
    stage_backward_weight(weights);
  } else {
    torch::autograd::backward(outputs, grads);
  }
  seen.after = mib(bytes->now), seen.peak = mib(bytes->peak);
  at::set_num_threads(threads);
  return seen;
}
void PrintTo(const Footprint& f, std::ostream* out) {
  *out << f.after_forward << " after forward, " << f.between << " between, " << f.peak_input_half
       << " at most in the first half, " << f.peak << " at most, " << f.after << " after (MiB)";
}

/// The transformer of the design's measurements: B4 T256 D512, two blocks. The full backward's numbers confirm that it
/// is the same one. Between the halves each linear keeps its input and its output's gradient.
TEST(SplitCounts, BytesOfALargeTransformerAreAtTheFloor) {
  const BuildStage make = [](at::ScalarType dtype) { return transformer(dtype, 4, 256, 512, 2, 8); };
  const Footprint full = footprint(make, false), halves = footprint(make, true);
  EXPECT_NEAR(full.after_forward, 66.1, 0.05);
  EXPECT_NEAR(full.peak, 78.1, 0.05);
  EXPECT_NEAR(full.after, 30.1, 0.05);
  EXPECT_EQ(halves.after_forward, full.after_forward);
  EXPECT_EQ(halves.after, full.after);
  EXPECT_LE(halves.between, 68.05) << ::testing::PrintToString(halves);
  EXPECT_LE(halves.peak_input_half, 82.15) << ::testing::PrintToString(halves);
  EXPECT_LE(halves.peak, 82.15) << ::testing::PrintToString(halves);
}

/// The same, smaller, in units of one activation.
TEST(SplitCounts, BytesInUnitsOfOneActivation) {
  const BuildStage make = [](at::ScalarType dtype) { return transformer(dtype, 16, 64, 64, 2, 2); };
  const Footprint full = footprint(make, false), halves = footprint(make, true);
  const double unit = 16 * 64 * 64 * 4 / double(1 << 20);
  EXPECT_EQ(halves.after_forward, full.after_forward);
  EXPECT_EQ(halves.after, full.after);
  // For two blocks: 14 inputs of linears, 18 gradients of their outputs less the last one, which was given; and the
  // stage's input, output and input gradient. One percent is for gains and biases.
  EXPECT_LE(halves.between, (14 + 17 + 3) * unit * 1.01) << ::testing::PrintToString(halves);
  // At the first node that needs much memory: the gradients of gelu, before and after it.
  EXPECT_LE(halves.peak, halves.after_forward + 8 * unit * 1.01) << ::testing::PrintToString(halves);
}

TEST(SplitCounts, BytesOfAnMlp) {
  const BuildStage make = [](at::ScalarType dtype) { return mlp(dtype, 4, 64, 16); };
  const Footprint full = footprint(make, false), halves = footprint(make, true);
  const double unit = 64 * 16 * 4 / double(1 << 20);
  // Inputs of four linears (the first is the stage's), the gradients of three outputs (the fourth was given), the
  // output and the input's gradient.
  EXPECT_EQ(halves.between, (4 + 3 + 2) * unit) << ::testing::PrintToString(halves);
  EXPECT_EQ(halves.after, full.after);
}

}  // namespace
}  // namespace plumbline::backward
