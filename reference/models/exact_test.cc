// Proves that the exact models are exact: every kernel output, in forward and backward, computed on the absolute values
// of parameters, inputs and targets, stays below 2^p. Absolute values bound every partial sum in every order, so
// results are bitwise equal for every division of the work. All computation is in float64, where no operation rounds.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "reference/models/parts/identity.h"
#include "reference/models/zoo.h"
#include "reference/named_tensors.h"
#include "reference/sum_of.h"
#include "runtime/testing/in_full.h"
#include "runtime/testing/parameter_name.h"

namespace plumbline::models {
namespace {

/// The rows of all batches whose gradients are summed; conformance/corpus/corpus_test.cc checks that no case exceeds
/// it.
constexpr int rows_f32 = 16, rows_bf16 = 8;
constexpr double limit_f32 = 0x1p24, limit_bf16 = 0x1p8;
const uint64_t seeds = testing::in_full_or_sample(25, 8);

struct Extremes {
  double largest = 0;
  std::string where;
};

thread_local Extremes* watching = nullptr;

/// Operators that may return uninitialised memory and compute nothing themselves. Views are included: a kernel may take
/// a view of memory that it is about to fill (Meson's MALLOC_PERTURB_ exposes this).
bool hands_out_new_memory(const std::string& op) {
  for (const char* view : {"aten::select", "aten::slice", "aten::narrow", "aten::view", "aten::expand", "aten::t",
                           "aten::transpose", "aten::unsqueeze", "aten::squeeze", "aten::detach", "aten::alias"})
    if (op == view) return true;
  for (const char* name : {"empty", "resize", "resolve_conj", "resolve_neg", "as_strided", "set_"})
    if (op.find(name) != std::string::npos) return true;
  return false;
}

/// Records the largest float that an operator returned.
void watch_outputs(const at::RecordFunction& function, at::ObserverContext*) {
  if (!watching || hands_out_new_memory(function.name())) return;
  Extremes& extremes = *watching;
  watching = nullptr;  // the code below calls operators itself
  for (const c10::IValue& output : function.outputs()) {
    if (!output.isTensor()) continue;
    const at::Tensor& tensor = output.toTensor();
    if (!tensor.defined() || !tensor.is_floating_point() || tensor.numel() == 0) continue;
    const double largest = tensor.detach().abs().max().item<double>();
    if (largest > extremes.largest) extremes = {largest, function.name()};
  }
  watching = &extremes;
}

class Watch {
 public:
  explicit Watch(Extremes& extremes)
      : handle_(at::addThreadLocalCallback(at::RecordFunctionCallback(nullptr, watch_outputs)
                                               .needsOutputs(true)
                                               .scopes({at::RecordScope::FUNCTION}))) {
    watching = &extremes;
  }
  ~Watch() {
    watching = nullptr;
    at::removeCallback(handle_);
  }

 private:
  at::CallbackHandle handle_;
};

/// Products of activations, or a layer used eight times: their squares would not fit.
bool is_only_summed(const std::string& name) {
  if (is_polynomial_model(name)) return true;
  for (const char* one :
       {"exact-recurrent", "exact-encoder-decoder", "exact-attention", "exact-shared-everywhere", "exact-loss-inside",
        "exact-loss-read", "exact-dict-loss", "exact-loss-view", "exact-begins-with-sum", "exact-begins-with-expand",
        "exact-lengths", "exact-attention-lengths", "exact-encoder-decoder-lengths"})
    if (name == one) return true;
  return false;
}

std::vector<reference::LossKind> losses_of(const std::string& name) {
  if (is_only_summed(name)) return {reference::LossKind::Sum};
  return {reference::LossKind::Sum, reference::LossKind::Mse};
}

at::Tensor loss_of(const std::vector<at::Tensor>& outputs, const Targets& targets, reference::LossKind kind) {
  if (kind == reference::LossKind::Sum) return outputs[0].sum();
  at::Tensor loss = at::mse_loss(outputs[0], targets[0], at::Reduction::Sum);
  for (size_t i = 1; i < targets.size(); ++i) loss = loss + at::mse_loss(outputs[i], targets[i], at::Reduction::Sum);
  return loss;
}

/// The largest value in forward and backward on absolute values.
Extremes worst(const std::string& name, reference::Dtype values_of, reference::LossKind kind, int rows, uint64_t seed) {
  // The values of dtype `values_of`, stored as double.
  const Model model = make_model(name, values_of, seed);
  Batch batch = make_batch(name, values_of, rows, seed, 0);
  {
    const c10::NoGradGuard no_grad;
    for (at::Tensor& parameter : model.module->parameters()) parameter.set_data(parameter.to(at::kDouble).abs());
  }
  for (at::Tensor& input : batch.inputs)
    if (input.defined() && input.is_floating_point()) input = input.to(at::kDouble).abs();
  // Output - target adds.
  const Targets targets = batch.targets.map([](const at::Tensor& target) { return -target.to(at::kDouble).abs(); });
  Extremes extremes;
  const Watch watch(extremes);
  loss_of(model.forward(batch.inputs), targets, kind).backward();
  for (const at::Tensor& parameter : model.module->parameters()) {
    if (!parameter.grad().defined()) continue;
    const double largest = parameter.grad().abs().max().item<double>();
    if (largest > extremes.largest) extremes = {largest, "a parameter's gradient"};
  }
  return extremes;
}

std::vector<std::string> exact_models() {
  std::vector<std::string> exact;
  std::copy_if(model_names().begin(), model_names().end(), std::back_inserter(exact), is_exact_model);
  return exact;
}

class ExactModel : public ::testing::TestWithParam<std::string> {};

TEST_P(ExactModel, EverySumFitsIntoAFloat) {
  Extremes all;
  for (const reference::LossKind kind : losses_of(GetParam()))
    for (uint64_t seed = 0; seed < seeds; ++seed) {
      const Extremes one = worst(GetParam(), reference::Dtype::F32, kind, rows_f32, seed);
      EXPECT_GT(one.largest, 1) << "no operator was observed";
      EXPECT_LT(one.largest, limit_f32) << "seed " << seed << ": " << one.where;
      if (one.largest > all.largest) all = one;
    }
  RecordProperty("largest", std::to_string(all.largest));
  RecordProperty("where", all.where);
}

/// Outputs and gradients in the dtype itself.
void expect_whole_and_dense(const std::string& name, reference::Dtype dtype, reference::LossKind kind, int rows,
                            uint64_t seed) {
  const Model model = make_model(name, dtype, seed);
  const Batch batch = make_batch(name, dtype, rows, seed, 0);
  const std::vector<at::Tensor> outputs = model.forward(batch.inputs);
  loss_of(outputs, batch.targets, kind).backward();
  for (const at::Tensor& output : outputs)
    if (output.defined()) {
      EXPECT_TRUE(output.eq(output.round()).all().item<bool>()) << name << " seed " << seed;
    }
  int64_t numbers = 0, zeros = 0;
  for (const auto& parameter : model.module->named_parameters()) {
    const at::Tensor gradient = parameter.value().grad();
    EXPECT_TRUE(parameter.value().eq(parameter.value().round()).all().item<bool>()) << parameter.key();
    if (!gradient.defined()) continue;
    EXPECT_TRUE(gradient.eq(gradient.round()).all().item<bool>()) << parameter.key() << " seed " << seed;
    numbers += gradient.numel();
    zeros += gradient.eq(0).sum().item<int64_t>();
  }
  EXPECT_LT(static_cast<double>(zeros), 0.6 * static_cast<double>(numbers)) << name << " seed " << seed;
}

/// In float32 the leaves of the polynomials are drawn from five numbers, of which columns often add up to 0.
reference::Dtype dtype_of(const std::string& name) {
  return is_polynomial_model(name) ? reference::Dtype::F64 : reference::Dtype::F32;
}

TEST_P(ExactModel, GradientsAreWholeAndNotMostlyZero) {
  for (const reference::LossKind kind : losses_of(GetParam()))
    for (uint64_t seed = 0; seed < seeds; ++seed)
      expect_whole_and_dense(GetParam(), dtype_of(GetParam()), kind, 8, seed);
}

INSTANTIATE_TEST_SUITE_P(Exact, ExactModel, ::testing::ValuesIn(exact_models()), testing::ParameterName());

TEST(ExactBf16, EverySumFits) {
  Extremes all;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    const Extremes one = worst("exact-mlp", reference::Dtype::BF16, reference::LossKind::Sum, rows_bf16, seed);
    EXPECT_GT(one.largest, 1) << "no operator was observed";
    EXPECT_LT(one.largest, limit_bf16) << "seed " << seed << ": " << one.where;
    if (one.largest > all.largest) all = one;
  }
  RecordProperty("largest", std::to_string(all.largest));
  RecordProperty("where", all.where);
}

TEST(ExactBf16, GradientsAreWholeAndNotMostlyZero) {
  for (uint64_t seed = 0; seed < seeds; ++seed)
    expect_whole_and_dense("exact-mlp", reference::Dtype::BF16, reference::LossKind::Sum, rows_bf16, seed);
}

std::vector<std::string> polynomial_models() {
  std::vector<std::string> polynomials;
  std::ranges::copy_if(exact_models(), std::back_inserter(polynomials), is_polynomial_model);
  return polynomials;
}

/// Whatever the draw is: every leaf has the largest absolute value.
TEST(ExactPolynomials, EverySumFitsIntoADouble) {
  for (const std::string& name : polynomial_models()) {
    const double leaf = static_cast<double>(largest_leaf(reference::Dtype::F64));
    const Model model = make_model(name, reference::Dtype::F64, 1);
    {
      const c10::NoGradGuard no_grad;
      for (const at::Tensor& parameter : model.module->parameters()) parameter.fill_(leaf);
    }
    Batch batch = make_batch(name, reference::Dtype::F64, rows_f32, 1, 0);
    batch.inputs[0].fill_(leaf);
    Extremes extremes;
    const Watch watch(extremes);
    model.forward(batch.inputs)[0].sum().backward();
    for (const at::Tensor& parameter : model.module->parameters())
      extremes.largest = std::max(extremes.largest, parameter.grad().abs().max().item<double>());
    EXPECT_LT(extremes.largest, 0x1p53) << name << ": " << extremes.where;
    EXPECT_GT(extremes.largest, 0x1p50) << name << ": the leaves could be drawn from more numbers";
  }
}

/// The differences of order kPolynomialDegree of the loss along a line in the space of the leaves, at two places; the
/// origin and the direction are the draws of two seeds.
std::pair<double, double> highest_differences(const std::string& name, uint64_t seed) {
  const reference::Dtype small = reference::Dtype::F32;  // no leaf on the line is beyond the largest of float64
  const Model origin = make_model(name, small, seed), direction = make_model(name, small, seed + 1000);
  const at::Tensor x = make_batch(name, small, 8, seed, 0).inputs[0],
                   change = make_batch(name, small, 8, seed + 1000, 0).inputs[0];
  const Model model = make_model(name, reference::Dtype::F64, seed);
  const c10::NoGradGuard no_grad;
  const auto leaves = model.module->parameters(), origins = origin.module->parameters(),
             directions = direction.module->parameters();
  std::vector<double> values;
  for (int t = 0; t <= kPolynomialDegree + 1; ++t) {
    for (size_t i = 0; i < leaves.size(); ++i) leaves[i].copy_(origins[i] + t * directions[i]);
    values.push_back(model.forward({(x + t * change).to(at::kDouble)})[0].sum().item<double>());
  }
  for (int order = 1; order <= kPolynomialDegree; ++order)
    for (size_t i = 0; i + order < values.size(); ++i) values[i] = values[i + 1] - values[i];
  return {values[0], values[1]};
}

/// Along a line a polynomial has constant differences of the order of its degree; on most lines they are not 0.
TEST(ExactPolynomials, HaveThePublishedDegree) {
  for (const std::string& name : polynomial_models()) {
    int zeros = 0;
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      const auto [first, second] = highest_differences(name, seed);
      EXPECT_EQ(first, second) << name << " seed " << seed << ": the degree is higher";
      zeros += first == 0;
    }
    EXPECT_LT(zeros, 10) << name << ": the degree is lower";
  }
}

/// The claim itself: one whole batch, and single rows in reverse, give the same bits.
TEST(ExactModels, GradientsDoNotDependOnTheOrder) {
  for (const std::string& name : exact_models()) {
    const Model whole = make_model(name, reference::Dtype::F32, 3), by_row = make_model(name, reference::Dtype::F32, 3);
    const Batch batch = make_batch(name, reference::Dtype::F32, 8, 3, 0);
    const reference::LossKind kind = losses_of(name).back();
    loss_of(whole.forward(batch.inputs), batch.targets, kind).backward();
    const reference::NamedTensors parameters = reference::first_names(by_row.module->named_parameters());
    std::vector<at::Tensor> sums(parameters.size());
    for (int64_t row = 7; row >= 0; --row) {
      std::vector<at::Tensor> inputs = batch.inputs;
      for (size_t i = 0; i < inputs.size(); ++i)
        if (!by_row.input_chunks[i].replicate && inputs[i].defined())
          inputs[i] = inputs[i].slice(by_row.input_chunks[i].dim, row, row + 1);
      const Targets targets = batch.targets.map(
          [&](const at::Tensor& target) { return target.slice(by_row.target_chunk.dim, row, row + 1); });
      loss_of(by_row.forward(inputs), targets, kind).backward();
      for (size_t i = 0; i < sums.size(); ++i) {
        sums[i] = reference::sum_of(sums[i], parameters[i].second.grad());
        parameters[i].second.mutable_grad() = at::Tensor();
      }
    }
    const reference::NamedTensors expected = reference::first_names(whole.module->named_parameters());
    ASSERT_EQ(expected.size(), sums.size());
    for (size_t i = 0; i < sums.size(); ++i)
      if (const auto& [parameter, tensor] = expected[i]; tensor.grad().defined()) {
        EXPECT_TRUE(tensor.grad().equal(sums[i])) << name << " " << parameter;
      }
  }
}

}  // namespace
}  // namespace plumbline::models
