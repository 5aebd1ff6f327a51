// Each lemma about rows, held against LibTorch: for every letter, every division of its dimension into two, and all
// sizes up to 3. The operands are whole numbers, so that sums have no rounding.
#include "conformance/proof/rows/lemmas.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/proof/testing/operator_samples.h"

namespace plumbline::proof {
namespace {

using Arguments = std::vector<c10::IValue>;
using Tensors = std::vector<at::Tensor>;

const c10::FunctionSchema& schema_of(const OperatorSample& sample) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(sample.name.c_str(), sample.overload.c_str()).schema();
}

/// None for an optional tensor is an undefined tensor, as the dispatcher passes it on.
Arguments with_undefined(const OperatorSample& sample, Arguments arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].isNone() && schema_of(sample).arguments()[i].type()->str().find("Tensor") != std::string::npos)
      arguments[i] = at::Tensor();
  return arguments;
}

std::optional<Sizes> sizes_of(const at::Tensor& tensor) {
  return tensor.defined() ? std::optional(Sizes(tensor.sizes())) : std::nullopt;
}

/// A lemma, applied to one call.
struct Applied {
  OperatorSample sample;
  Arguments arguments;
  Tensors operands = {}, results = {};
  Letters letters = {};
};

Applied apply(RowLemma lemma, const OperatorSample& sample, const SampleSizes& sizes) {
  Applied applied{.sample = sample, .arguments = with_undefined(sample, sample.arguments(sizes))};
  // Operands that the operator writes must not change those that are divided.
  const auto copy = [](const at::Tensor& tensor, size_t) { return tensor.defined() ? tensor.clone() : tensor; };
  applied.results = call_operator(sample, mapped(applied.arguments, copy));
  OperatorCall call{.schema = schema_of(sample), .arguments = applied.arguments, .operands = {}, .results = {}};
  mapped(applied.arguments, [&](const at::Tensor& tensor, size_t) {
    applied.operands.push_back(tensor);
    call.operands.push_back(sizes_of(tensor));
    return tensor;
  });
  for (const at::Tensor& result : applied.results) call.results.push_back(sizes_of(result));
  applied.letters = lemma(call);
  return applied;
}

/// The results for the slices from `begin` on, of a number of slices along `letter`, and `count` of a divisor that each
/// part has its own of.
Tensors part_of(const Applied& applied, char letter, int64_t begin, int64_t size, const at::Tensor& count) {
  Arguments arguments = mapped(applied.arguments, [&](const at::Tensor& tensor, size_t k) {
    if (applied.letters.divided_by_operand == k) return count;
    const size_t dim = applied.letters.operands.at(k).find(letter);
    return dim == std::string::npos ? (tensor.defined() ? tensor.clone() : tensor)
                                    : tensor.narrow(static_cast<int64_t>(dim), begin, size).clone();
  });
  const auto& parameters = schema_of(applied.sample).arguments();
  const size_t dim = applied.letters.results.at(0).find(letter);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = parameters[i].name();
    if ((name == "input_sizes" || name == "input_size") && dim != std::string::npos) {
      std::vector<int64_t> sizes = arguments[i].toIntVector();
      sizes.at(dim) = size;
      arguments[i] = sizes;
    }
    if (name == "N") arguments[i] = size;
  }
  return call_operator(applied.sample, arguments);
}

/// Whether the lemma is true of this letter, divided before slice `cut`.
bool holds(const Applied& applied, char letter, int64_t all, int64_t cut) {
  const Letters& letters = applied.letters;
  at::Tensor count, count_a, count_b;
  if (letters.divided_by_operand) {
    count = applied.operands.at(*letters.divided_by_operand);
    count_a = at::full_like(count, 3);
    count_b = count - count_a;
  }
  const Tensors a = part_of(applied, letter, 0, cut, count_a), b = part_of(applied, letter, cut, all - cut, count_b);
  for (size_t r = 0; r < applied.results.size(); ++r) {
    const at::Tensor& whole = applied.results[r];
    if (!whole.defined()) continue;
    at::Tensor weight_a = at::ones({}, at::kDouble), weight_b = weight_a;
    if (letters.averaged.find(letter) != std::string::npos) {
      weight_a = weight_a * static_cast<double>(cut) / static_cast<double>(all);
      weight_b = weight_b * static_cast<double>(all - cut) / static_cast<double>(all);
    }
    if (letters.divided_by_result && r != *letters.divided_by_result) {
      const at::Tensor& sum = applied.results[*letters.divided_by_result];
      weight_a = weight_a * a[*letters.divided_by_result] / sum;
      weight_b = weight_b * b[*letters.divided_by_result] / sum;
    }
    if (letters.divided_by_operand) {
      weight_a = weight_a * count_a / count;
      weight_b = weight_b * count_b / count;
    }
    const auto weighted = [](const at::Tensor& part, const at::Tensor& weight) {
      return weight.item().toDouble() == 1 ? part : part * weight;
    };
    const at::Tensor one = weighted(a[r], weight_a), other = weighted(b[r], weight_b);
    const size_t dim = letters.results.at(r).find(letter);
    if (dim != std::string::npos) {
      if (one.dim() != whole.dim()) return false;
      if (!same_numbers(whole, at::cat({one, other}, static_cast<int64_t>(dim)))) return false;
    } else if (one.sizes() != other.sizes() || !same_numbers(whole, one + other)) {
      return false;
    }
  }
  return true;
}

/// Whether no result depends on the operands of which the lemma says so.
bool unread_holds(const Applied& applied) {
  const Tensors others =
      call_operator(applied.sample, mapped(applied.arguments, [&](const at::Tensor& tensor, size_t k) {
                      return applied.letters.unread.contains(k) ? tensor + 1 : tensor;
                    }));
  for (size_t r = 0; r < others.size(); ++r)
    if (others[r].defined() && !same_numbers(others[r], applied.results[r])) return false;
  return true;
}

/// Whether the lemma is true of the sample at these sizes; counts the divisions that it tried.
bool holds(RowLemma lemma, const OperatorSample& sample, const SampleSizes& sizes, int& tried) {
  const Applied applied = apply(lemma, sample, sizes);
  if (!applied.letters.unread.empty() && !unread_holds(applied)) return false;
  std::map<char, int64_t> all;
  for (size_t k = 0; k < applied.operands.size(); ++k) {
    const std::string& letters = applied.letters.operands.at(k);
    if (!applied.operands[k].defined()) continue;
    if (letters.size() != static_cast<size_t>(applied.operands[k].dim())) return false;
    for (size_t d = 0; d < letters.size(); ++d) {
      const int64_t size = applied.operands[k].size(static_cast<int64_t>(d));
      if (letters[d] == '.' && size != 1) return false;
      if (letters[d] == '.' || letters[d] == 'X') continue;
      if (all.emplace(letters[d], size).first->second != size) return false;
    }
  }
  for (const auto& [letter, size] : all)
    for (int64_t cut = 1; cut < size; ++cut) {
      ++tried;
      if (!holds(applied, letter, size, cut)) return false;
    }
  return true;
}

/// The first sizes for which the lemma is false of the sample; empty if there are none.
std::string where_false(RowLemma lemma, const OperatorSample& sample, int& tried) {
  for (int64_t n = 1; n <= 3; ++n)
    for (int64_t k = 1; k <= 3; ++k)
      for (int64_t m = 1; m <= 3; ++m) {
        at::manual_seed(100 * n + 10 * k + m);
        const std::string sizes = "n " + std::to_string(n) + ", k " + std::to_string(k) + ", m " + std::to_string(m);
        try {
          if (!holds(lemma, sample, {n, k, m}, tried)) return sizes;
        } catch (const c10::Error& error) {
          return sizes + ": " + error.what_without_backtrace();
        }
      }
  return {};
}

TEST(RowLemmas, EachHolds) {
  std::map<std::string, int> tried;
  for (const OperatorSample& sample : operator_samples()) {
    const auto lemma = row_lemmas().find(full_name(sample));
    ASSERT_NE(lemma, row_lemmas().end()) << full_name(sample);
    EXPECT_EQ(where_false(lemma->second, sample, tried[full_name(sample)]), "") << full_name(sample);
  }
  for (const auto& [name, lemma] : row_lemmas()) EXPECT_GT(tried[std::string(name)], 0) << name << " was not tried";
}

std::string letters(size_t rank) { return std::string("abcdef").substr(0, rank); }

/// What a hasty author might write.
struct Planted {
  const char *op, *what;
  RowLemma lemma;
};

const Planted kPlanted[] = {
    {"aten::_softmax", "a softmax acts on each element alone",
     [](const OperatorCall& call) {
       return Letters{{letters(call.operands[0]->size())}, {letters(call.results[0]->size())}};
     }},
    {"aten::cumsum", "a running sum acts on each element alone",
     [](const OperatorCall& call) {
       return Letters{{letters(call.operands[0]->size())}, {letters(call.results[0]->size())}};
     }},
    {"aten::native_batch_norm", "batch norm acts on each row alone",
     [](const OperatorCall&) { return Letters{{"nXX", "X", "X", "X", "X"}, {"nXX", "X", "X"}}; }},
    {"aten::mean", "the mean of parts is a mean with equal weights",
     [](const OperatorCall&) { return Letters{{"ab"}, {""}}; }},
    {"aten::amax", "the largest is a sum of the largest",
     [](const OperatorCall& call) { return Letters{{"ab"}, {call.results[0]->size() == 2 ? ".b" : "a"}}; }},
    {"aten::addmm", "the summand is divided along the common dimension",
     [](const OperatorCall& call) {
       return Letters{{call.operands[0]->size() == 2 ? "nm" : "m", "nk", "km"}, {"nm"}};
     }},
    {"aten::mse_loss_backward", "a mean's gradient does not depend on the number of rows",
     [](const OperatorCall& call) {
       const std::string of = letters(call.results[0]->size());
       return Letters{{call.operands[0]->empty() ? "" : of, of, of}, {of}};
     }},
    {"aten::nll_loss_forward", "a mean over targets has the weights of rows",
     [](const OperatorCall& call) {
       return Letters{
           .operands = {"nX", "n", "X"}, .results = {call.results[0]->empty() ? "" : "n", ""}, .averaged = "n"};
     }},
    {"aten::nll_loss_backward", "a mean's gradient does not read the number of targets",
     [](const OperatorCall& call) {
       return Letters{
           .operands = {call.operands[0]->empty() ? "" : "n", "nX", "n", "", ""}, .results = {"nX"}, .unread = {4}};
     }},
    {"aten::embedding", "the table may be divided along its entries",
     [](const OperatorCall&) { return Letters{{"vX", "ab"}, {"abX"}}; }},
    {"aten::native_layer_norm_backward", "the gradient of the weight is that of any row",
     [](const OperatorCall&) { return Letters{{"abX", "abX", "ab.", "ab.", "X", "X"}, {"abX", "a", "X"}}; }},
    {"aten::constant_pad_nd", "padding acts on each slice alone",
     [](const OperatorCall&) { return Letters{{"ab"}, {"ab"}}; }},
    {"aten::bmm", "the product of parts is divided along the common dimension",
     [](const OperatorCall&) { return Letters{{"bnk", "bkm"}, {"bnk"}}; }},
};

TEST(RowLemmas, EachPlantedOneIsFound) {
  for (const Planted& planted : kPlanted) {
    std::string found;
    for (const OperatorSample& sample : operator_samples()) {
      int tried = 0;
      if (found.empty() && full_name(sample) == planted.op) found = where_false(planted.lemma, sample, tried);
    }
    EXPECT_NE(found, "") << planted.op << ": " << planted.what;
  }
}

}  // namespace
}  // namespace plumbline::proof
