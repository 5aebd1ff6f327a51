// The lemma of each operator in the table, held against LibTorch: a factor of an operand is a factor of every result,
// and a sum of operands gives the sum of the results.
// Factors are powers of two and -1, so that both sides have the same bits, whatever the kernel rounds.
#include "conformance/proof/sums/linear_operators.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <set>

#include "conformance/proof/testing/operator_samples.h"

namespace plumbline::proof {
namespace {

using Arguments = std::vector<c10::IValue>;
using Sample = OperatorSample;

/// `arguments` with the tensors at the positions of `which` (all if empty) multiplied.
Arguments scaled(const Arguments& arguments, const std::set<size_t>& which, double factor) {
  return mapped(arguments, [&](const at::Tensor& tensor, size_t position) {
    return which.empty() || which.contains(position) ? tensor * factor : tensor;
  });
}

/// The sum of two lists of arguments, where they differ: of the tensors at the positions of `which` (all if empty).
std::vector<at::Tensor> sums(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  std::vector<at::Tensor> results;
  for (size_t i = 0; i < a.size(); ++i) results.push_back(a[i].defined() ? a[i] + b[i] : at::Tensor());
  return results;
}

/// `arguments` with other tensors at the positions of `which` (all if empty): those of `others`, added or alone.
Arguments replaced(const Arguments& arguments, const Arguments& others, const std::set<size_t>& which, bool added) {
  std::vector<at::Tensor> by;
  mapped(others, [&](const at::Tensor& tensor, size_t) { return by.emplace_back(tensor); });
  return mapped(arguments, [&](const at::Tensor& tensor, size_t position) {
    const bool chosen = which.empty() || which.contains(position);
    if (!chosen || !tensor.is_floating_point()) return tensor;
    return added ? tensor + by[position] : by[position];
  });
}

/// Whether a sum of the operands `which` gives a sum of every result, for some draws.
bool lets_sums_through(const Sample& sample, const std::set<size_t>& which) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    at::manual_seed(seed);
    const Arguments one = sample.arguments({}), two = sample.arguments({});
    const std::vector<at::Tensor> apart =
        sums(call_operator(sample, one), call_operator(sample, replaced(one, two, which, /*added=*/false)));
    const std::vector<at::Tensor> together = call_operator(sample, replaced(one, two, which, /*added=*/true));
    for (size_t i = 0; i < apart.size(); ++i)
      if (apart[i].defined() && !same_numbers(apart[i], together[i])) return false;
  }
  return true;
}

/// Whether a factor of the operands `which` is a factor of every result, for some draws.
bool lets_factors_through(const Sample& sample, const std::set<size_t>& which) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    at::manual_seed(seed);
    const Arguments arguments = sample.arguments({});
    const std::vector<at::Tensor> plain = call_operator(sample, arguments);
    for (const double factor : {2.0, -1.0, 0.25}) {
      const std::vector<at::Tensor> results = call_operator(sample, scaled(arguments, which, factor));
      for (size_t i = 0; i < plain.size(); ++i)
        if (plain[i].defined() && !results[i].equal(plain[i] * factor)) return false;
    }
  }
  return true;
}

TEST(LinearOperators, EachLetsFactorsThrough) {
  std::set<std::string> tried;
  for (const Sample& sample : operator_samples()) {
    const auto known = linear_operators().find(full_name(sample));
    if (known == linear_operators().end()) continue;
    tried.insert(full_name(sample));
    const Linear& linear = known->second;
    EXPECT_NE(linear.jointly, !linear.operands.empty()) << full_name(sample);
    if (linear.jointly) {
      EXPECT_TRUE(lets_factors_through(sample, {})) << full_name(sample);
      EXPECT_TRUE(lets_sums_through(sample, {})) << full_name(sample);
    }
    for (const size_t operand : linear.operands) {
      EXPECT_TRUE(lets_factors_through(sample, {operand})) << full_name(sample) << ", operand " << operand;
      EXPECT_TRUE(lets_sums_through(sample, {operand})) << full_name(sample) << ", operand " << operand;
    }
  }
  for (const auto& [name, linear] : linear_operators())
    EXPECT_EQ(name.starts_with("aten::"), tried.contains(std::string(name))) << name << " has no lemma";
}

/// Operators that are not linear, or not in this operand: the test above would find them in the table.
TEST(LinearOperators, AnUnsoundLemmaIsFound) {
  const auto one = [](const SampleSizes&) { return Arguments{at::randn({3, 4}, at::kDouble)}; };
  for (const char* name : {"aten::relu", "aten::abs", "aten::exp", "aten::tanh", "aten::sgn"})
    EXPECT_FALSE(lets_factors_through({name, "", one}, {0})) << name;
  // The largest lets positive factors through, but no sums.
  EXPECT_FALSE(lets_sums_through(
      {"aten::amax", "",
       [](const SampleSizes&) { return Arguments{at::randn({3, 4}, at::kDouble), std::vector<int64_t>{1}, false}; }},
      {0}));
  for (const Sample& sample : operator_samples())
    for (const char* name : {"aten::div.Tensor", "aten::gelu_backward", "aten::_softmax_backward_data",
                             "aten::native_layer_norm_backward", "aten::mse_loss_backward"})
      if (full_name(sample) == name) {
        EXPECT_FALSE(lets_factors_through(sample, {1})) << name;
      }
}

}  // namespace
}  // namespace plumbline::proof
