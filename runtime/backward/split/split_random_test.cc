// Random autograd programs: I then W equals the full backward bitwise. A failing program is printed in its smallest
// form.
#include <gtest/gtest.h>

#include "runtime/backward/released_output.h"
#include "runtime/backward/testing/random_autograd.h"

namespace plumbline::backward {
namespace {

using namespace backward_test;

constexpr int kMicroBatches = 3;
using Subject = std::function<Gradients(const BuildStage&, at::ScalarType)>;

/// In halves; W comes one micro-batch after I, and the outputs of every second micro-batch are released first.
Gradients halves(const BuildStage& make, at::ScalarType dtype) {
  const Stage stage = build(make, dtype);
  Gradients made;
  std::vector<WeightBackward> weights(kMicroBatches);
  for (int m = 0; m <= kMicroBatches; ++m) {
    if (m < kMicroBatches) {
      MicroBatch batch = forward(stage, m);
      for (size_t i = 0; i < batch.outputs.size(); ++i)
        if (m % 2 && batch.root_grads[i].defined()) batch.outputs[i] = released_output(batch.outputs[i]);
      const Tensors before = copies(grads_of(stage.params));
      made.inputs.emplace_back();
      stage_backward_input(batch.outputs, batch.root_grads, batch.inputs, made.inputs.back(), weights[m]);
      const Tensors after = grads_of(stage.params);
      for (size_t i = 0; i < after.size(); ++i)
        if (!same(before[i], after[i])) throw std::runtime_error("the first half changed a parameter's gradient");
    }
    if (m > 0) stage_backward_weight(weights[m - 1]);
  }
  made.params = grads_of(stage.params);
  return made;
}

/// Empty when all gradients are equal.
std::string difference(const RandomProgram& program, at::ScalarType dtype, const Subject& subject) try {
  const BuildStage make = [&](at::ScalarType t) { return stage_of(program, t); };
  const Gradients full = run_full(make, dtype, kMicroBatches), got = subject(make, dtype);
  std::string found;
  const auto compare = [&](const Tensors& expected, const Tensors& actual, const std::string& what) {
    for (size_t i = 0; i < expected.size(); ++i)
      if (const ::testing::AssertionResult result = same(expected[i], actual[i]); !result)
        found += what + std::to_string(i) + ": " + result.message() + "\n";
  };
  for (int m = 0; m < kMicroBatches; ++m)
    compare(full.inputs[m], got.inputs[m], "micro-batch " + std::to_string(m) + ", input ");
  compare(full.params, got.params, "parameter ");
  return found;
} catch (const std::exception& error) {
  return error.what();
}

class SplitRandom : public ::testing::TestWithParam<at::ScalarType> {};

TEST_P(SplitRandom, ProgramsAreBitwiseEqual) {
  int failed = 0;
  for (unsigned seed = 1; seed <= 100 && failed < 5; ++seed) {
    const RandomProgram program = random_program(seed);
    const std::string found = difference(program, GetParam(), halves);
    if (found.empty()) continue;
    ++failed;
    const RandomProgram least =
        shrink(program, [&](const RandomProgram& one) { return !difference(one, GetParam(), halves).empty(); });
    ADD_FAILURE() << found << "least program: " << text(least) << "\n" << difference(least, GetParam(), halves);
  }
}
INSTANTIATE_TEST_SUITE_P(Dtypes, SplitRandom, ::testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return info.param == at::kFloat ? "f32" : "bf16"; });

/// The programs contain both kinds of value, parameters in several places and all operations.
TEST(SplitRandomPrograms, HaveEveryOperation) {
  std::vector<int> uses(static_cast<size_t>(RandomOp::Count));
  for (unsigned seed = 1; seed <= 200; ++seed)
    for (const RandomStep& step : random_program(seed).steps) ++uses[static_cast<size_t>(step.op)];
  for (size_t i = 0; i < uses.size(); ++i) EXPECT_GE(uses[i], 20) << name_of(static_cast<RandomOp>(i));
}

/// A subject that loses one gradient: the shrunk program is the operation that makes that gradient.
TEST(SplitRandomPrograms, AreShrunkToWhatFails) {
  const size_t kernel = RandomProgram::kWeights + RandomProgram::kVectors;
  const Subject loses = [&](const BuildStage& make, at::ScalarType dtype) {
    Gradients made = run_full(make, dtype, kMicroBatches);
    if (made.params[kernel].defined()) made.params[kernel] = at::zeros_like(made.params[kernel]);
    return made;
  };
  const auto fails = [&](const RandomProgram& one) { return !difference(one, at::kFloat, loses).empty(); };
  int shrunk = 0;
  for (unsigned seed = 1; shrunk < 3; ++seed) {
    const RandomProgram program = random_program(seed);
    if (!fails(program)) continue;
    ++shrunk;
    const RandomProgram least = shrink(program, fails);
    EXPECT_TRUE(fails(least)) << text(least);
    ASSERT_EQ(least.steps.size(), 1u) << text(least);
    EXPECT_EQ(least.steps[0].op, RandomOp::Convolution);
    EXPECT_EQ(least.outputs.size(), 1u) << text(least);
  }
}

}  // namespace
}  // namespace plumbline::backward
