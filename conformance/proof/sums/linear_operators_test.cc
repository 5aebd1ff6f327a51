// The lemma of each operator in the table, held against LibTorch: a factor of an operand is a factor of every result.
// Factors are powers of two and -1, so that both sides have the same bits, whatever the kernel rounds.
#include "conformance/proof/sums/linear_operators.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace plumbline::proof {
namespace {

using Arguments = std::vector<c10::IValue>;

/// One call of an operator: its name without overload, the overload, and arguments drawn anew by each call.
struct Sample {
  std::string name, overload;
  std::function<Arguments()> arguments;
};

at::Tensor drawn(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble); }
c10::IValue ints(std::vector<int64_t> values) { return c10::IValue(std::move(values)); }
c10::IValue none() { return {}; }
c10::IValue all_of_three() { return c10::IValue(c10::List<bool>({true, true, true})); }

/// The operators of this table, by "aten::name" or "aten::name.overload".
const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = {
      {"aten::mm", "", [] { return Arguments{drawn({3, 4}), drawn({4, 2})}; }},
      {"aten::bmm", "", [] { return Arguments{drawn({2, 3, 4}), drawn({2, 4, 2})}; }},
      {"aten::mul", "Tensor", [] { return Arguments{drawn({3, 4}), drawn({4})}; }},
      {"aten::div", "Tensor", [] { return Arguments{drawn({3, 4}), drawn({4})}; }},
      {"aten::sum", "", [] { return Arguments{drawn({3, 4}), none()}; }},
      {"aten::sum", "dim_IntList", [] { return Arguments{drawn({3, 4}), ints({0}), false, none()}; }},
      {"aten::mean", "", [] { return Arguments{drawn({3, 4}), none()}; }},
      {"aten::mean", "dim", [] { return Arguments{drawn({3, 4}), ints({1}), true, none()}; }},
      {"aten::avg_pool2d", "",
       [] { return Arguments{drawn({1, 2, 6, 6}), ints({2, 2}), ints({2, 2}), ints({0, 0}), false, true, none()}; }},
      {"aten::embedding", "", [] { return Arguments{drawn({5, 3}), at::randint(5, {4}), -1, false, false}; }},
      {"aten::pixel_shuffle", "", [] { return Arguments{drawn({1, 4, 2, 2}), 2}; }},
      {"aten::pixel_unshuffle", "", [] { return Arguments{drawn({1, 1, 4, 4}), 2}; }},
      {"aten::cat", "", [] { return Arguments{std::vector<at::Tensor>{drawn({2, 3}), drawn({1, 3})}, 0}; }},
      {"aten::stack", "", [] { return Arguments{std::vector<at::Tensor>{drawn({2, 3}), drawn({2, 3})}, 1}; }},
      {"aten::threshold_backward", "", [] { return Arguments{drawn({3, 4}), drawn({3, 4}), 0}; }},
      {"aten::gelu_backward", "", [] { return Arguments{drawn({3, 4}), drawn({3, 4}), std::string("none")}; }},
      {"aten::tanh_backward", "", [] { return Arguments{drawn({3, 4}), drawn({3, 4}).tanh()}; }},
      {"aten::_softmax_backward_data", "",
       [] { return Arguments{drawn({3, 4}), drawn({3, 4}).softmax(1), 1, c10::kDouble}; }},
      {"aten::_log_softmax_backward_data", "",
       [] { return Arguments{drawn({3, 4}), drawn({3, 4}).log_softmax(1), 1, c10::kDouble}; }},
      {"aten::native_layer_norm_backward", "",
       [] {
         return Arguments{drawn({3, 4}),       drawn({3, 4}), ints({4}),  drawn({3, 1}),
                          drawn({3, 1}).abs(), drawn({4}),    drawn({4}), all_of_three()};
       }},
      {"aten::native_batch_norm_backward", "",
       [] {
         return Arguments{drawn({4, 3, 2}), drawn({4, 3, 2}), drawn({3}), none(), none(),
                          drawn({3}),       drawn({3}).abs(), true,       1e-5,   all_of_three()};
       }},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", "",
       [] {
         const at::Tensor q = drawn({1, 2, 4, 8}), k = drawn({1, 2, 4, 8}), v = drawn({1, 2, 4, 8});
         const auto [out, logsumexp] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v);
         return Arguments{drawn({1, 2, 4, 8}), q, k, v, out, logsumexp, 0.0, false, none(), none()};
       }},
      {"aten::mse_loss_backward", "",
       [] { return Arguments{drawn({}), drawn({3, 4}), drawn({3, 4}), int64_t{at::Reduction::Mean}}; }},
      {"aten::nll_loss_backward", "",
       [] {
         return Arguments{drawn({}),
                          drawn({3, 4}),
                          at::randint(4, {3}),
                          none(),
                          int64_t{at::Reduction::Mean},
                          -100,
                          at::full({}, 3.0, at::kDouble)};
       }},
      {"aten::embedding_dense_backward", "",
       [] { return Arguments{drawn({4, 3}), at::randint(5, {4}), 5, -1, false}; }},
      {"aten::convolution_backward", "",
       [] {
         return Arguments{drawn({1, 3, 4, 4}), drawn({1, 2, 4, 4}),
                          drawn({3, 2, 3, 3}), ints({3}),
                          ints({1, 1}),        ints({1, 1}),
                          ints({1, 1}),        false,
                          ints({0, 0}),        1,
                          all_of_three()};
       }},
      {"aten::avg_pool2d_backward", "",
       [] {
         return Arguments{
             drawn({1, 2, 3, 3}), drawn({1, 2, 6, 6}), ints({2, 2}), ints({2, 2}), ints({0, 0}), false, true, none()};
       }},
      {"aten::slice_backward", "", [] { return Arguments{drawn({2, 4}), ints({5, 4}), 0, 1, 3, 1}; }},
      {"aten::select_backward", "", [] { return Arguments{drawn({4}), ints({5, 4}), 0, 2}; }},
  };
  return all;
}

std::string full_name(const Sample& sample) {
  return sample.overload.empty() ? sample.name : sample.name + "." + sample.overload;
}

std::vector<at::Tensor> call(const Sample& sample, Arguments arguments) {
  const c10::OperatorHandle op =
      c10::Dispatcher::singleton().findSchemaOrThrow(sample.name.c_str(), sample.overload.c_str());
  torch::jit::Stack stack(arguments.begin(), arguments.end());
  op.callBoxed(stack);
  std::vector<at::Tensor> results;
  for (const c10::IValue& value : stack) results.push_back(value.toTensor());
  return results;
}

/// `arguments` with the tensors at the positions of `which` (all if empty) multiplied. A position counts tensors as the
/// operands of a term do.
Arguments scaled(const Arguments& arguments, const std::set<size_t>& which, double factor) {
  Arguments result;
  size_t position = 0;
  const auto times = [&](const at::Tensor& tensor) {
    const bool chosen = which.empty() || which.contains(position);
    ++position;
    return chosen ? tensor * factor : tensor;
  };
  for (const c10::IValue& argument : arguments) {
    if (argument.isTensor()) {
      result.emplace_back(times(argument.toTensor()));
    } else if (argument.isTensorList()) {
      std::vector<at::Tensor> list;
      for (const at::Tensor& tensor : argument.toTensorVector()) list.push_back(times(tensor));
      result.emplace_back(list);
    } else {
      result.push_back(argument);
    }
  }
  return result;
}

/// Whether a factor of the operands `which` is a factor of every result, for some draws.
bool lets_factors_through(const Sample& sample, const std::set<size_t>& which) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    at::manual_seed(seed);
    const Arguments arguments = sample.arguments();
    const std::vector<at::Tensor> plain = call(sample, arguments);
    for (const double factor : {2.0, -1.0, 0.25}) {
      const std::vector<at::Tensor> results = call(sample, scaled(arguments, which, factor));
      for (size_t i = 0; i < plain.size(); ++i)
        if (plain[i].defined() && !results[i].equal(plain[i] * factor)) return false;
    }
  }
  return true;
}

TEST(LinearOperators, EachLetsFactorsThrough) {
  std::set<std::string> tried;
  for (const Sample& sample : samples()) {
    const auto known = linear_operators().find(full_name(sample));
    ASSERT_NE(known, linear_operators().end()) << full_name(sample);
    tried.insert(full_name(sample));
    const Linear& linear = known->second;
    EXPECT_NE(linear.jointly, !linear.operands.empty()) << full_name(sample);
    if (linear.jointly) {
      EXPECT_TRUE(lets_factors_through(sample, {})) << full_name(sample);
    }
    for (const size_t operand : linear.operands)
      EXPECT_TRUE(lets_factors_through(sample, {operand})) << full_name(sample) << ", operand " << operand;
  }
  for (const auto& [name, linear] : linear_operators())
    EXPECT_EQ(name.starts_with("aten::"), tried.contains(std::string(name))) << name << " has no lemma";
}

/// Operators that are not linear, or not in this operand: the test above would find them in the table.
TEST(LinearOperators, AnUnsoundLemmaIsFound) {
  const auto one = [] { return Arguments{drawn({3, 4})}; };
  for (const char* name : {"aten::relu", "aten::abs", "aten::exp", "aten::tanh", "aten::sgn"})
    EXPECT_FALSE(lets_factors_through({name, "", one}, {0})) << name;
  for (const Sample& sample : samples())
    for (const char* name : {"aten::div.Tensor", "aten::gelu_backward", "aten::_softmax_backward_data",
                             "aten::native_layer_norm_backward", "aten::mse_loss_backward"})
      if (full_name(sample) == name) {
        EXPECT_FALSE(lets_factors_through(sample, {1})) << name;
      }
}

}  // namespace
}  // namespace plumbline::proof
