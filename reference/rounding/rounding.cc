#include "reference/rounding/rounding.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/rounding/rounding_ops.h"
#include "runtime/error.h"

namespace plumbline::reference {
namespace {

bool is_double(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().scalar_type() == at::kDouble;
}

bool is_complex(const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().is_complex();
}

bool representable(double value, double roundoff) {
  int exponent;
  const double digits = std::frexp(value, &exponent) / roundoff;
  return !std::isfinite(value) || std::nearbyint(digits) == digits;
}

/// Whether the call writes the argument, according to its schema or, for running statistics, to a rule here.
bool written(const c10::OperatorHandle& op, size_t index) {
  const auto& argument = op.schema().arguments()[index];
  if (capture::is_written(argument)) return true;
  return (argument.name() == "running_mean" || argument.name() == "running_var") &&
         op.operator_name().name.find("backward") == std::string::npos;
}

/// Visits the float64 results of a call that are neither views nor arguments returned unchanged; the index counts
/// results.
template <class Visit>
void for_each_result(const c10::OperatorHandle& op, const torch::jit::Stack& stack,
                     c10::ArrayRef<c10::IValue> arguments, const Visit& visit) {
  const auto& returns = op.schema().returns();
  const auto results = torch::jit::last(stack, returns.size());
  const auto passed_on = [&](const at::Tensor& result) {
    for (const c10::IValue& argument : arguments)
      if (argument.isTensor() && argument.toTensor().defined() && argument.toTensor().has_storage() &&
          argument.toTensor().is_alias_of(result))
        return true;
    return false;
  };
  for (size_t i = 0; i < results.size(); ++i) {
    const auto* alias = returns[i].alias_info();
    const bool in_place = alias && alias->isWrite();
    if (results[i].isTensorList()) {
      if (alias) continue;
      for (const at::Tensor& item : results[i].toTensorVector())
        if (is_double(item) && !passed_on(item)) visit(i, item);
    } else if (is_double(results[i]) && (in_place || (!alias && !passed_on(results[i].toTensor())))) {
      visit(i, results[i].toTensor());
    }
  }
}

}  // namespace

RoundingModel rounding_model(at::ScalarType type, uint64_t seed) {
  switch (type) {
    case at::kFloat:
      return {0x1p-24, 0x1p-24, seed};
    case at::kHalf:
      return {0x1p-11, 0x1p-24, seed};
    case at::kBFloat16:
      return {0x1p-8, 0x1p-24, seed};
    default:
      throw InputError(std::string("rounding_model: ") + at::toString(type) + " is not one of Float, Half, BFloat16");
  }
}

RoundingInterposer::RoundingInterposer(const RoundingModel& model) : model_(model), counter_(model.seed, "rounding") {}

void RoundingInterposer::disturb(const at::Tensor& values, double relative) {
  if (!values.is_contiguous()) {
    const at::Tensor factor = at::empty_like(values, at::MemoryFormat::Contiguous);
    double* const out = factor.mutable_data_ptr<double>();
    for (int64_t i = 0, n = factor.numel(); i < n; ++i) out[i] = 1 + relative * xi();
    values.mul_(factor);
    return;
  }
  double* const out = values.mutable_data_ptr<double>();
  for (int64_t i = 0, n = values.numel(); i < n; ++i) out[i] *= 1 + relative * xi();
}

void RoundingInterposer::disturb(const at::Tensor& values, const at::Tensor& half_width) {
  const at::Tensor error = half_width.contiguous().clone();
  double* const out = error.mutable_data_ptr<double>();
  for (int64_t i = 0, n = error.numel(); i < n; ++i) out[i] *= xi();
  values.add_(error);
}

at::Tensor RoundingInterposer::disturbed(const at::Tensor& values, double relative) {
  at::Tensor copy = values.clone();  // keeps strides: a kernel selects its code path by them
  disturb(copy, relative);
  return copy;
}

void RoundingInterposer::disturb_scalars(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const double u = model_.accumulation_roundoff;
  const size_t count = op.schema().arguments().size();
  for (size_t i = stack->size() - count; i < stack->size(); ++i) {
    c10::IValue& argument = (*stack)[i];
    if (argument.isDouble() && !representable(argument.toDouble(), u)) {
      argument = argument.toDouble() * (1 + u * xi());
    } else if (is_double(argument) && argument.toTensor().dim() == 0 &&
               argument.toTensor().unsafeGetTensorImpl()->is_wrapped_number()) {
      const at::Tensor number = argument.toTensor();
      if (representable(number.item<double>(), u)) continue;
      at::Tensor copy = disturbed(number, u);
      copy.unsafeGetTensorImpl()->set_wrapped_number(true);
      argument = copy;
    }
  }
}

void RoundingInterposer::call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string_view name = rounding_name(op.operator_name().name);
  const RoundingKind kind = rounding_kind(name);
  const auto& returns = op.schema().returns();
  const bool all_views = !returns.empty() && std::ranges::all_of(returns, capture::is_view);
  if (all_views || kind == RoundingKind::None) return op.callBoxed(stack);
  if (std::ranges::any_of(torch::jit::last(*stack, op.schema().arguments().size()), is_complex))
    return call_complex(op, stack);
  disturb_scalars(op, stack);
  if (kind == RoundingKind::Contraction) return call_contraction(op, stack);
  if (kind == RoundingKind::Kernel) return call_kernel(op, stack);

  const size_t count = op.schema().arguments().size();
  // a + alpha b rounds alpha b first.
  const bool scaled = count == 3 && op.schema().arguments()[2].name() == "alpha" &&
                      (*stack)[stack->size() - 1].isScalar() &&
                      std::abs((*stack)[stack->size() - 1].toScalar().toDouble()) != 1;
  c10::IValue& other = (*stack)[stack->size() - count + (count > 1)];
  if (scaled && is_double(other)) other = disturbed(other.toTensor(), model_.accumulation_roundoff);
  const auto last = torch::jit::last(*stack, count);
  const std::vector<c10::IValue> arguments(last.begin(), last.end());
  op.callBoxed(stack);
  for_each_result(op, *stack, arguments,
                  [&](size_t, const at::Tensor& result) { disturb(result, model_.unit_roundoff); });
}

void RoundingInterposer::call_contraction(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string_view name = rounding_name(op.operator_name().name);
  const auto last = torch::jit::last(*stack, op.schema().arguments().size());
  const std::vector<c10::IValue> arguments(last.begin(), last.end());
  torch::jit::Stack squares = arguments;
  for (size_t i = 0; i < squares.size(); ++i) {
    const std::string& argument = op.schema().arguments()[i].name();
    if (is_double(squares[i]))
      squares[i] = squares[i].toTensor() * squares[i].toTensor();
    else if ((argument == "alpha" || argument == "beta") && squares[i].isScalar())
      squares[i] = at::Scalar(squares[i].toScalar().toDouble() * squares[i].toScalar().toDouble());
  }
  op.callBoxed(stack);
  op.callBoxed(&squares);
  std::vector<at::Tensor> squared_terms;
  for (const c10::IValue& result : squares)
    squared_terms.push_back(result.isTensor() ? result.toTensor() : at::Tensor());
  for_each_result(op, *stack, arguments, [&](size_t i, const at::Tensor& result) {
    const double k = contraction_terms(name, arguments, i, result);
    // A mean first stores the sum, then divides.
    const double stored = model_.unit_roundoff * model_.unit_roundoff * (name == "mean" ? 2 : 1);
    const double inner = model_.accumulation_roundoff * model_.accumulation_roundoff;
    // A sum of k has k - 1 additions; a mean divides each term by k.
    const double products = name == "sum" || name == "mean" ? 0 : 1;
    const double of_squares = inner * ((k + 1) / 6 - 1 / k + products) / (name == "mean" ? k : 1);
    const at::Tensor variance = (result * result * (stored + inner * (k + 1) / 3)).add_(squared_terms[i], of_squares);
    disturb(result, variance.sqrt_());
  });
}

void RoundingInterposer::call_complex(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string_view name = rounding_name(op.operator_name().name);
  const double u = model_.unit_roundoff;
  const auto last = torch::jit::last(*stack, op.schema().arguments().size());
  const std::vector<c10::IValue> arguments(last.begin(), last.end());
  at::Tensor variance;  // of each part of a result
  if (name == "mul" && arguments[1].isTensor()) {
    // (ac - bd) + i (ad + bc): three roundings, each of a number of at most |a + ib| |c + id|.
    const at::Tensor size = arguments[0].toTensor().abs() * arguments[1].toTensor().abs();
    variance = size * size * (3 * u * u);
  } else if (name == "sum") {
    torch::jit::Stack squares = arguments;
    squares[0] = arguments[0].toTensor().abs().square();
    op.callBoxed(&squares);
    variance = squares.back().toTensor();
  } else if (name != "add" && name != "sub") {
    throw InputError("running_error: the rounding of complex numbers in " + op.operator_name().name +
                     " is not known; expected one of add, sub, mul, sum");
  }
  op.callBoxed(stack);
  const at::Tensor result = stack->back().toTensor(), parts = at::view_as_real(result);
  if (name == "sum") {
    const double k = contraction_terms(name, arguments, 0, result);
    variance = (result.abs().square() * ((k + 1) / 3) + variance * ((k + 1) / 6 - 1 / k)) * (u * u);
  }
  if (variance.defined())
    disturb(parts, variance.sqrt().unsqueeze(-1).expand(parts.sizes()));
  else
    disturb(parts, u);
}

void RoundingInterposer::call_kernel(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string_view name = rounding_name(op.operator_name().name);
  const double u = model_.accumulation_roundoff;
  const size_t count = op.schema().arguments().size();
  const auto last = torch::jit::last(*stack, count);
  const std::vector<c10::IValue> arguments(last.begin(), last.end());

  const double longest = kernel_reduction(name, arguments, op.hasTag(at::Tag::pointwise));
  // A reduction in a 16-bit format may store partial results (per thread, or per level of a cascade).
  const double partial = longest > 1 && model_.unit_roundoff > u ? model_.unit_roundoff : 0;
  const double of_arguments = std::hypot(partial, u * (1 + std::sqrt(longest / 6)));
  const double of_results = std::hypot(partial, std::hypot(model_.unit_roundoff, u * std::sqrt(4 + longest / 3)));
  for (size_t i = 0; i < count; ++i)
    if (is_double(arguments[i]) && !written(op, i))
      (*stack)[stack->size() - count + i] = disturbed(arguments[i].toTensor(), of_arguments);
  op.callBoxed(stack);
  bool first = true;
  for_each_result(op, *stack, arguments, [&](size_t, const at::Tensor& result) {
    disturb(result, of_results);
    if (!first) return;
    first = false;
    if (const at::Tensor size = cancelled_size(name, arguments); size.defined()) disturb(result, size * u);
  });
  for (size_t i = 0; i < count; ++i)
    if (!(op.schema().arguments()[i].alias_info()) && written(op, i) && is_double(arguments[i]))
      disturb(arguments[i].toTensor(), of_results);
}

BoundedResults running_error(const std::function<NamedResults()>& run, const RoundingModel& model, int samples) {
  constexpr double share = 0.5, norm_factor = 10;  // norm_factor: c in the header
  const c10::NoGradGuard no_grad;
  const auto detached = [&](NamedResults results) {
    for (auto& [name, result] : results) result = result.detach().to(at::kDouble, false, /*copy=*/true).contiguous();
    return results;
  };
  const auto sampled = [&] {
    const c10::AutoGradMode grad(true);
    return detached(run());
  };
  BoundedResults out{sampled(), {}, {}};
  NamedResults squares;
  for (const auto& [name, value] : out.value) {
    out.bound[name] = at::zeros_like(value);
    squares[name] = at::zeros_like(value);
  }
  for (int sample = 0; sample < samples; ++sample) {
    RoundingModel drawn = model;
    drawn.seed = models::splitmix64(model.seed, static_cast<uint64_t>(sample));
    RoundingInterposer interposer(drawn);
    NamedResults disturbed;
    {
      const capture::InterposerScope scope(interposer);
      disturbed = sampled();
    }
    for (const auto& [name, value] : disturbed)
      if (!out.value.contains(name)) throw InputError("running_error: the run did not return " + name + " before");
    for (const auto& [name, value] : out.value) {
      const auto it = disturbed.find(name);
      if (it == disturbed.end() || it->second.sizes() != value.sizes())
        throw InputError("running_error: the run no longer returns " + name + ", or returns it in another shape");
      const at::Tensor deviation = it->second.sub_(value).abs_();
      at::maximum_out(out.bound[name], out.bound[name], deviation);
      squares[name].addcmul_(deviation, deviation);
    }
  }
  for (auto& [name, bound] : out.bound) {
    const at::Tensor& value = out.value[name];
    const double count = static_cast<double>(std::max<int64_t>(value.numel(), 1));
    const double mean_square = squares[name].sum().item<double>() / std::max(samples, 1);  // of the norms
    const double norm = value.norm().item<double>();
    bound = at::maximum(bound, value.abs() * model.unit_roundoff).clamp_min_(share * std::sqrt(mean_square / count));
    bound.mul_(kRoundingSafety);
    const double deviation = norm_factor * std::sqrt(mean_square);
    out.rel_gate[name] = norm > 0 ? std::max(deviation / norm, norm_factor * model.unit_roundoff)
                                  : (deviation > 0 ? std::numeric_limits<double>::infinity() : 0);
  }
  return out;
}

}  // namespace plumbline::reference
