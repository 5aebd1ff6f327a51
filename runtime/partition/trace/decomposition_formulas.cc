#include "runtime/partition/trace/decomposition_formulas.h"

#include <ATen/ATen.h>

#include <cmath>
#include <numbers>

#include "runtime/graph/wrapped_number.h"

namespace plumbline::partition {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Arguments = std::span<const c10::IValue>;
using Dimensions = std::vector<int64_t>;

Tensor optional(const c10::IValue& value) { return value.isTensor() ? value.toTensor() : Tensor(); }

bool is_half(at::ScalarType type) { return type == at::kHalf || type == at::kBFloat16; }

/// What kernels compute in: float32 where the data is of half precision.
Tensor wide(const Tensor& x) {
  return x.defined() && is_half(x.scalar_type()) ? at::_to_copy(x, at::TensorOptions(at::kFloat)) : x;
}
Tensor as(const Tensor& x, at::ScalarType type) {
  return x.scalar_type() == type ? x : at::_to_copy(x, at::TensorOptions(type));
}
Tensor like(const Tensor& x, const Tensor& other) { return as(x, other.scalar_type()); }

Tensor zeros(at::IntArrayRef shape, const Tensor& other) { return at::full(shape, 0, other.options()); }

Tensor one_minus(const Tensor& x) { return at::sub(graph::wrapped_number(1), x); }

Dimensions range(int64_t begin, int64_t end) {
  Dimensions all;
  for (int64_t d = begin; d < end; ++d) all.push_back(d);
  return all;
}

/// `x` summed over `dimensions`, which are kept as 1; summing over none is `x` itself (sum() would take all).
Tensor sum_over(const Tensor& x, const Dimensions& dimensions, bool keep) {
  return dimensions.empty() ? x : at::sum(x, dimensions, keep);
}
Tensor mean_over(const Tensor& x, const Dimensions& dimensions) {
  return dimensions.empty() ? x : at::mean(x, dimensions, true);
}

// --- views and copies ------------------------------------------------------------------------------------------------

Tensors transpose_matrix(Arguments in) {
  const Tensor x = in[0].toTensor();
  return {x.dim() == 2 ? at::permute(x, {1, 0}) : at::alias(x)};
}

Tensors transpose(Arguments in) {
  const Tensor x = in[0].toTensor();
  if (x.dim() == 0) return {at::alias(x)};
  Dimensions order = range(0, x.dim());
  const auto place = [&](int64_t d) { return d < 0 ? d + x.dim() : d; };
  std::swap(order[place(in[1].toInt())], order[place(in[2].toInt())]);
  return {at::permute(x, order)};
}

Tensors unsafe_view(Arguments in) { return {in[0].toTensor().view(in[1].toIntVector())}; }

Tensors detach(Arguments in) { return {at::alias(in[0].toTensor())}; }

Tensors slice_backward(Arguments in) {
  const Tensor grad = in[0].toTensor();
  return {at::slice_scatter(zeros(in[1].toIntVector(), grad), grad, in[2].toInt(), in[3].toInt(), in[4].toInt(),
                            in[5].toInt())};
}

Tensors select_backward(Arguments in) {
  const Tensor grad = in[0].toTensor();
  return {at::select_scatter(zeros(in[1].toIntVector(), grad), grad, in[2].toInt(), in[3].toInt())};
}

// --- element by element ----------------------------------------------------------------------------------------------

Tensors sigmoid_backward(Arguments in) {
  const Tensor grad = wide(in[0].toTensor()), y = wide(in[1].toTensor());
  return {like(grad * (y * one_minus(y)), in[0].toTensor())};
}

Tensors tanh_backward(Arguments in) {
  const Tensor grad = wide(in[0].toTensor()), y = wide(in[1].toTensor());
  return {like(grad * one_minus(y * y), in[0].toTensor())};
}

Tensors threshold_backward(Arguments in) {
  const Tensor grad = in[0].toTensor(), x = in[1].toTensor();
  return {at::where(at::le(x, in[2].toScalar()), at::Scalar(0), grad)};
}

Tensors gelu_backward(Arguments in) {
  const Tensor grad = wide(in[0].toTensor()), x = wide(in[1].toTensor());
  constexpr double root_half = 1 / std::numbers::sqrt2;
  if (in[2].toStringRef() == "none") {
    const Tensor below = 0.5 * (1 + at::erf(x * root_half));
    const Tensor density = at::exp(x * x * -0.5) * (0.5 * 2 * std::numbers::inv_sqrtpi * root_half);
    return {like(grad * (below + x * density), in[0].toTensor())};
  }
  constexpr double beta = std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kappa = 0.044715;
  const Tensor squared = x * x;
  const Tensor t = at::tanh(beta * (x + kappa * squared * x));
  const Tensor slope = one_minus(t * t) * (beta * (1 + 3 * kappa * squared));
  return {like(grad * (0.5 * (1 + t) + 0.5 * x * slope), in[0].toTensor())};
}

Tensors silu_backward(Arguments in) {
  const Tensor grad = wide(in[0].toTensor()), x = wide(in[1].toTensor()), s = at::sigmoid(x);
  return {like(grad * (s * (1 + x * one_minus(s))), in[0].toTensor())};
}

/// A loss from its terms, as `reduction` says.
Tensor reduced(const Tensor& terms, int64_t reduction) {
  if (reduction == at::Reduction::None) return terms;
  return reduction == at::Reduction::Mean ? at::mean(terms) : at::sum(terms);
}

Tensors mse_loss(Arguments in) {
  const Tensor x = in[0].toTensor(), difference = x - in[1].toTensor();
  if (is_half(x.scalar_type())) return {};
  return {reduced(difference * difference, in[2].toInt())};
}

Tensors mse_loss_backward(Arguments in) {
  const Tensor x = in[1].toTensor(), difference = x - in[2].toTensor();
  if (is_half(x.scalar_type())) return {};
  const bool mean = in[3].toInt() == at::Reduction::Mean;
  return {difference * (mean ? 2.0 / static_cast<double>(x.numel()) : 2.0) * in[0].toTensor()};
}

Tensors native_dropout_backward(Arguments in) {
  const Tensor grad = in[0].toTensor();
  return {grad * (as(in[1].toTensor(), grad.scalar_type()) * in[2].toDouble())};
}

// --- products --------------------------------------------------------------------------------------------------------

Tensors addmm(Arguments in) {
  const Tensor self = in[0].toTensor();
  if (is_half(self.scalar_type())) return {};  // the product would be rounded before the sum
  Tensor product = at::mm(in[1].toTensor(), in[2].toTensor());
  if (!in[4].toScalar().equal(1)) product = product * in[4].toScalar();
  if (in[3].toScalar().equal(0)) return {product};
  return {(in[3].toScalar().equal(1) ? self : self * in[3].toScalar()) + product};
}

// --- softmax ---------------------------------------------------------------------------------------------------------

at::ScalarType softmax_dtype(Arguments in) {
  const at::ScalarType type = in[0].toTensor().scalar_type();
  return in[2].toBool() ? at::kFloat : type;
}

Tensors softmax(Arguments in) {
  if (in[0].toTensor().numel() == 0) return {};
  const Tensor x = wide(in[0].toTensor());
  const int64_t dimension = in[1].toInt();
  const Tensor powers = at::exp(x - at::amax(x, {dimension}, true));
  return {as(powers / at::sum(powers, {dimension}, true), softmax_dtype(in))};
}

Tensors log_softmax(Arguments in) {
  if (in[0].toTensor().numel() == 0) return {};
  const Tensor x = wide(in[0].toTensor());
  const int64_t dimension = in[1].toInt();
  const Tensor shifted = x - at::amax(x, {dimension}, true);
  return {as(shifted - at::log(at::sum(at::exp(shifted), {dimension}, true)), softmax_dtype(in))};
}

Tensors softmax_backward(Arguments in) {
  const Tensor y = wide(in[1].toTensor()), weighted = wide(in[0].toTensor()) * y;
  return {as(weighted - y * at::sum(weighted, {in[2].toInt()}, true), static_cast<at::ScalarType>(in[3].toInt()))};
}

Tensors log_softmax_backward(Arguments in) {
  const Tensor grad = wide(in[0].toTensor()), y = wide(in[1].toTensor());
  return {as(grad - at::exp(y) * at::sum(grad, {in[2].toInt()}, true), static_cast<at::ScalarType>(in[3].toInt()))};
}

// --- norms -----------------------------------------------------------------------------------------------------------

Tensors layer_norm(Arguments in) {
  const Tensor given = in[0].toTensor(), weight = wide(optional(in[2])), bias = wide(optional(in[3]));
  const Tensor x = wide(given);
  const Dimensions inner = range(x.dim() - static_cast<int64_t>(in[1].toIntVector().size()), x.dim());
  const Tensor mean = mean_over(x, inner), centred = x - mean;
  const Tensor deviation = at::rsqrt(mean_over(centred * centred, inner) + in[4].toDouble());
  Tensor y = centred * deviation;
  if (weight.defined()) y = y * weight;
  if (bias.defined()) y = y + bias;
  // half-precision data with weights of its own type has statistics of that type
  const bool wide_statistics = optional(in[2]).defined() && !is_half(optional(in[2]).scalar_type());
  const auto statistic = [&](const Tensor& t) { return wide_statistics ? t : like(t, given); };
  return {like(y, given), statistic(mean), statistic(deviation)};
}

Tensors layer_norm_backward(Arguments in) {
  const Tensor grad = wide(in[0].toTensor()), x = wide(in[1].toTensor()), weight = wide(optional(in[5])),
               deviation = wide(in[4].toTensor());
  const int64_t border = x.dim() - static_cast<int64_t>(in[2].toIntVector().size());
  const Dimensions inner = range(border, x.dim()), outer = range(0, border);
  const Tensor normal = (x - wide(in[3].toTensor())) * deviation;
  const auto mask = in[7].toBoolList();
  Tensors results(3);
  if (mask[0]) {
    const Tensor g = weight.defined() ? grad * weight : grad;
    const Tensor spread = g - mean_over(g, inner) - normal * mean_over(g * normal, inner);
    results[0] = like(spread * deviation, in[1].toTensor());
  }
  if (mask[1] && weight.defined()) results[1] = like(sum_over(grad * normal, outer, false), in[5].toTensor());
  if (mask[2] && optional(in[6]).defined()) results[2] = like(sum_over(grad, outer, false), in[6].toTensor());
  return results;
}

/// All dimensions but that of the channels, and the shape in which a vector over the channels stands beside `x`.
Dimensions but_channels(const Tensor& x) {
  Dimensions dimensions = range(0, x.dim());
  dimensions.erase(dimensions.begin() + 1);
  return dimensions;
}
Tensor beside(const Tensor& channels, const Tensor& x) {
  Dimensions shape(x.dim(), 1);
  shape[1] = channels.size(0);
  return channels.view(shape);
}

/// Output, mean and inverse deviation of the batch, and the new running statistics where there were any.
Tensors batch_norm_in_training(Arguments in, double momentum, double eps) {
  const Tensor given = in[0].toTensor(), weight = wide(optional(in[1])), bias = wide(optional(in[2]));
  if (is_half(given.scalar_type())) return {};
  const Tensor &x = given, running_mean = optional(in[3]), running_variance = optional(in[4]);
  const Dimensions batch = but_channels(x);
  const int64_t count = x.numel() / x.size(1);
  const Tensor mean = at::mean(x, batch), centred = x - beside(mean, x);
  const Tensor variance = at::mean(centred * centred, batch), deviation = at::rsqrt(variance + eps);
  Tensor y = centred * beside(deviation, x);
  if (weight.defined()) y = y * beside(weight, x);
  if (bias.defined()) y = y + beside(bias, x);
  Tensors results{y, mean, deviation};
  if (!running_mean.defined()) return results;
  const double unbiased = static_cast<double>(count) / static_cast<double>(count - 1);
  results.push_back(running_mean * (1 - momentum) + mean * momentum);
  results.push_back(running_variance * (1 - momentum) + variance * (unbiased * momentum));
  return results;
}

Tensors functional_batch_norm(Arguments in) {
  if (!in[5].toBool()) return {};
  return batch_norm_in_training(in, in[6].toDouble(), in[7].toDouble());
}

Tensors batch_norm(Arguments in) {
  const Tensor x = in[0].toTensor(), weight = optional(in[1]), bias = optional(in[2]);
  if (in[5].toBool()) {  // the trace has no training with running statistics under this name
    return optional(in[3]).defined() ? Tensors{} : batch_norm_in_training(in, 0, in[7].toDouble());
  }
  if (is_half(x.scalar_type())) return {};
  Tensor factor = at::rsqrt(in[4].toTensor() + in[7].toDouble());
  if (weight.defined()) factor = factor * weight;
  Tensor y = (x - beside(in[3].toTensor(), x)) * beside(factor, x);
  if (bias.defined()) y = y + beside(bias, x);
  return {y, at::empty({0}, x.options()), at::empty({0}, x.options())};
}

Tensors batch_norm_backward(Arguments in) {
  const Tensor grad = in[0].toTensor(), x = in[1].toTensor(), weight = optional(in[2]);
  if (is_half(x.scalar_type())) return {};
  const bool training = in[7].toBool();
  const Tensor mean = training ? in[5].toTensor() : in[3].toTensor();
  const Tensor deviation = training ? in[6].toTensor() : at::rsqrt(in[4].toTensor() + in[8].toDouble());
  const auto mask = in[9].toBoolList();
  const Dimensions batch = but_channels(x);
  const double count = static_cast<double>(x.numel()) / static_cast<double>(x.size(1));
  const Tensor centred = x - beside(mean, x);
  const Tensor total = at::sum(grad, batch), along = at::sum(grad * centred, batch);
  const Tensor factor = weight.defined() ? deviation * weight : deviation;
  Tensors results(3);
  if (mask[0] && training) {
    const Tensor projected = centred * beside(along * (1 / count) * deviation * deviation, x);
    results[0] = (grad - projected - beside(total * (1 / count), x)) * beside(factor, x);
  } else if (mask[0]) {
    results[0] = grad * beside(factor, x);
  }
  if (mask[1]) results[1] = along * deviation;
  if (mask[2]) results[2] = total;
  return results;
}

// --- negative log likelihood -----------------------------------------------------------------------------------------

struct Targets {
  Tensor counted;  ///< bool: not to be ignored
  Tensor index;    ///< the class, 0 where ignored; one dimension more than the target
  Tensor weight;   ///< of the class of each target, 0 where ignored; undefined: no weights
};

Targets targets_of(const Tensor& x, const Tensor& target, const Tensor& weight, int64_t ignored) {
  Targets targets;
  const int64_t dimension = x.dim() - 1;
  targets.counted = at::ne(target, ignored);
  const Tensor safe = at::where(targets.counted, target, at::Scalar(0));
  targets.index = at::unsqueeze(safe, dimension);
  if (weight.defined()) {
    const Tensor of_class = at::index(weight, {safe});
    targets.weight = at::where(targets.counted, of_class, at::Scalar(0));
  }
  return targets;
}

Tensors nll_loss(Arguments in) {
  const Tensor x = in[0].toTensor(), target = in[1].toTensor(), weight = optional(in[2]);
  if (is_half(x.scalar_type()) || target.scalar_type() != at::kLong) return {};
  const int64_t reduction = in[3].toInt(), dimension = x.dim() - 1;
  const Targets targets = targets_of(x, target, weight, in[4].toInt());
  Tensor picked = at::squeeze(at::gather(x, dimension, targets.index), dimension);
  if (weight.defined()) picked = picked * targets.weight;
  const Tensor losses = at::where(targets.counted, -picked, at::Scalar(0));
  if (reduction == at::Reduction::None && x.dim() == 2) return {losses, zeros({}, x)};
  const Tensor total = weight.defined() ? at::sum(targets.weight) : as(at::sum(targets.counted), x.scalar_type());
  const Tensor sum = at::sum(losses);
  return {reduction == at::Reduction::Mean ? sum / total : sum, total};
}

Tensors nll_loss_backward(Arguments in) {
  const Tensor x = in[1].toTensor(), target = in[2].toTensor(), weight = optional(in[3]);
  if (is_half(x.scalar_type()) || target.scalar_type() != at::kLong) return {};
  const int64_t dimension = x.dim() - 1;
  const Targets targets = targets_of(x, target, weight, in[5].toInt());
  Tensor grad = in[0].toTensor();
  if (in[4].toInt() == at::Reduction::Mean) grad = grad / in[6].toTensor();
  if (weight.defined()) grad = grad * targets.weight;
  grad = at::where(targets.counted, -grad, at::Scalar(0));
  return {at::scatter(zeros(x.sizes(), x), dimension, targets.index, at::unsqueeze(grad, dimension))};
}

}  // namespace

const std::map<std::string, DecompositionFormula>& decomposition_formulas() {
  static const std::map<std::string, DecompositionFormula> formulas{
      {"aten::t", transpose_matrix},
      {"aten::transpose.int", transpose},
      {"aten::_unsafe_view", unsafe_view},
      {"aten::detach", detach},
      {"aten::slice_backward", slice_backward},
      {"aten::select_backward", select_backward},
      {"aten::sigmoid_backward", sigmoid_backward},
      {"aten::tanh_backward", tanh_backward},
      {"aten::threshold_backward", threshold_backward},
      {"aten::gelu_backward", gelu_backward},
      {"aten::silu_backward", silu_backward},
      {"aten::mse_loss", mse_loss},
      {"aten::mse_loss_backward", mse_loss_backward},
      {"aten::native_dropout_backward", native_dropout_backward},
      {"aten::addmm", addmm},
      {"aten::_softmax", softmax},
      {"aten::_log_softmax", log_softmax},
      {"aten::_softmax_backward_data", softmax_backward},
      {"aten::_log_softmax_backward_data", log_softmax_backward},
      {"aten::native_layer_norm", layer_norm},
      {"aten::native_layer_norm_backward", layer_norm_backward},
      {"aten::native_batch_norm", batch_norm},
      {"aten::_native_batch_norm_legit_functional", functional_batch_norm},
      {"aten::native_batch_norm_backward", batch_norm_backward},
      {"aten::nll_loss_forward", nll_loss},
      {"aten::nll_loss_backward", nll_loss_backward},
  };
  return formulas;
}

}  // namespace plumbline::partition
