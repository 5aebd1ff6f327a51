#include "reference/rounding/rounding_ops.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

namespace plumbline::reference {
namespace {

using Names = std::unordered_set<std::string_view>;

const Names kNone = {
    // copies, moves and constants
    "clone", "copy", "_to_copy", "fill", "zero", "zeros", "zeros_like", "ones", "ones_like", "full", "full_like",
    "new_zeros", "new_ones", "new_full", "scalar_tensor", "empty", "empty_like", "empty_strided", "new_empty",
    "new_empty_strided", "arange", "cat", "stack", "index", "index_select", "gather", "embedding", "slice_backward",
    "select_backward", "constant_pad_nd", "repeat", "roll", "flip", "tril", "triu", "where", "masked_fill", "scatter",
    "slice_scatter", "select_scatter", "as_strided_scatter", "diagonal_scatter", "_unsafe_view", "_reshape_alias",
    "_local_scalar_dense", "set", "resize", "detach", "lift_fresh", "alias",
    // random draws: the real run draws the same numbers
    "bernoulli", "rand", "rand_like", "randn", "randn_like", "randint", "uniform", "normal", "random", "randperm",
    "multinomial",
    // selections and signs
    "neg", "abs", "sgn", "sign", "relu", "threshold", "threshold_backward", "hardtanh", "hardtanh_backward", "clamp",
    "clamp_min", "clamp_max", "maximum", "minimum", "max", "min", "amax", "amin", "argmax", "argmin", "sort", "topk",
    "max_pool2d_with_indices", "eq", "ne", "gt", "ge", "lt", "le", "equal", "isnan", "isinf", "floor", "ceil", "round",
    "logical_not", "logical_and", "logical_or", "bitwise_not", "bitwise_and", "bitwise_or"};

const Names kSingle = {"add", "sub", "rsub", "mul", "div", "reciprocal", "sqrt"};

const Names kContractions = {"mm",  "addmm", "bmm",  "baddbmm",     "mv",
                             "dot", "sum",   "mean", "convolution", "convolution_backward"};

const at::Tensor& tensor(const c10::IValue& value) { return value.toTensor(); }

double count(const at::Tensor& tensor) { return static_cast<double>(std::max<int64_t>(tensor.numel(), 1)); }

double length(const at::Tensor& tensor, int64_t dim) {
  return tensor.dim() >= (dim < 0 ? -dim : dim + 1) ? static_cast<double>(tensor.size(dim)) : 1.0;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

std::string_view rounding_name(const std::string& operator_name) {
  std::string_view out = operator_name;
  if (out.starts_with("aten::")) out.remove_prefix(6);
  if (out.ends_with('_')) out.remove_suffix(1);
  return out;
}

RoundingKind rounding_kind(std::string_view name) {
  if (kNone.contains(name)) return RoundingKind::None;
  if (kSingle.contains(name)) return RoundingKind::Single;
  return kContractions.contains(name) ? RoundingKind::Contraction : RoundingKind::Kernel;
}

double contraction_terms(std::string_view name, c10::ArrayRef<c10::IValue> arguments, size_t index,
                         const at::Tensor& result) {
  if (name == "mm" || name == "mv") return length(tensor(arguments[0]), 1);
  if (name == "addmm") return length(tensor(arguments[1]), 1) + 1;
  if (name == "bmm") return length(tensor(arguments[0]), 2);
  if (name == "baddbmm") return length(tensor(arguments[1]), 2) + 1;
  if (name == "convolution") {  // result [N, C, space], weight [C, ...] or, transposed, [in, C / groups, ...]
    const at::Tensor& weight = tensor(arguments[1]);
    return count(weight) / std::max(length(weight, arguments[6].toBool() ? 1 : 0), 1.0) + 1;
  }
  if (name == "convolution_backward") {
    const at::Tensor& gradient = tensor(arguments[0]);
    const double places = count(gradient) / std::max(length(gradient, 1), 1.0);
    return index == 2 ? places : std::max(places * count(tensor(arguments[2])) / count(result), 1.0);
  }
  return std::max(count(tensor(arguments[0])) / count(result), 1.0);  // dot, sum, mean
}

double kernel_reduction(std::string_view name, c10::ArrayRef<c10::IValue> arguments, bool pointwise) {
  double largest = 1;
  const at::Tensor* first = nullptr;
  for (const c10::IValue& argument : arguments) {
    if (!argument.isTensor() || !argument.toTensor().defined()) continue;
    if (!first) first = &argument.toTensor();
    if (at::isFloatingType(argument.toTensor().scalar_type())) largest = std::max(largest, count(argument.toTensor()));
  }
  if (!first || pointwise) return 1;
  const bool backward = contains(name, "backward");
  const auto along = [&](int64_t dim) { return std::max(length(*first, dim), 1.0); };
  if (contains(name, "nll_loss")) return backward ? 1 : count(tensor(arguments[1]));
  if (contains(name, "softmax")) return along(arguments[backward ? 2 : 1].toInt());
  if (contains(name, "layer_norm") || contains(name, "rms_norm")) {
    // Normalised over the last dimensions; backward sums the gradients of weight and bias over the others.
    return backward ? std::max(along(-1), count(*first) / along(-1)) : along(-1);
  }
  if (contains(name, "batch_norm")) return count(*first) / along(1);
  if (contains(name, "group_norm")) return count(*first) / along(0);
  if (contains(name, "scaled_dot_product")) return std::max({along(-1), along(-2), length(tensor(arguments[1]), -2)});
  if (name == "embedding_dense_backward") return count(tensor(arguments[1]));
  return largest;
}

at::Tensor cancelled_size(std::string_view name, c10::ArrayRef<c10::IValue> arguments) {
  const auto abs = [&](size_t i) { return tensor(arguments[i]).abs(); };
  // x (1 + erf) / 2, x (1 + tanh) / 2: absolute error of the bracket.
  if (name == "gelu") return abs(0);
  // gradient * (cdf + x pdf), gradient * s (1 + x (1 - s))
  if (name == "gelu_backward" || name == "silu_backward") return abs(0) * (abs(1) + 1);
  if (name == "tanh_backward") return abs(0);
  if (name == "_log_softmax") {  // (x - max) - log(sum): the sum is >= 1
    const at::Tensor& x = tensor(arguments[0]);
    return at::full_like(x, 2 + std::sqrt(length(x, arguments[1].toInt()) / 3));
  }
  if (name == "_log_softmax_backward_data") {  // gradient - exp(result) * sum(gradient)
    const at::Tensor &gradient = tensor(arguments[0]), &result = tensor(arguments[1]);
    const int64_t dim = arguments[2].toInt();
    return (gradient.abs() + result.exp() * gradient.sum(dim, true).abs()) * (1 + std::sqrt(length(gradient, dim) / 3));
  }
  if (name == "_softmax_backward_data") {  // result * (gradient - sum(gradient * result))
    const at::Tensor &gradient = tensor(arguments[0]), &result = tensor(arguments[1]);
    const int64_t dim = arguments[2].toInt();
    return result.abs() * (gradient.abs() + (gradient * result).sum(dim, true).abs()) *
           (1 + std::sqrt(length(gradient, dim) / 3));
  }
  return {};
}

}  // namespace plumbline::reference
