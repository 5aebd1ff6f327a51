#include "reference/rounding/magnitude.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "reference/rounding/rounding_ops.h"
#include "runtime/error.h"
#include "runtime/graph/host_tensors.h"

namespace plumbline::reference {
namespace {

using Names = std::unordered_set<std::string_view>;  // without "aten::" and without a final underscore

/// Sums of products with coefficients >= 0: their results must be >= 0.
const Names kSums = {// products of matrices
                     "mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot",
                     // arithmetic
                     "add", "mul", "addcmul", "sub", "div",
                     // over dimensions
                     "sum", "mean", "cumsum",
                     // of single elements
                     "relu", "threshold_backward", "pow", "sgn",
                     // losses, convolutions
                     "mse_loss", "mse_loss_backward", "convolution", "convolution_backward"};

/// Moves data that may be negative (a target), or sums values into one place (without new cancellation: the values of a
/// gradient were checked to be >= 0 when they were computed).
const Names kMoves = {// of single elements
                      "abs",
                      // by index
                      "embedding", "embedding_dense_backward", "index", "index_put", "_index_put_impl", "index_select",
                      "index_add", "gather", "scatter_add", "scatter",
                      // parts and places
                      "cat", "stack", "slice_backward", "select_backward", "constant_pad_nd", "repeat", "roll", "flip",
                      "pixel_shuffle", "pixel_unshuffle", "tril", "triu", "unfold_backward",
                      // masks
                      "where", "masked_fill", "clamp",
                      // copies
                      "clone", "copy", "_to_copy",
                      // constants
                      "fill", "zero", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full",
                      // read by the program
                      "_local_scalar_dense", "eq", "ne", "gt", "ge", "lt", "le", "equal"};

/// Allocates memory that is written later.
bool gives_no_value(std::string_view name) { return name.starts_with("empty") || name.starts_with("new_empty"); }

/// Real or complex numbers.
bool holds_numbers(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.is_floating_point() || tensor.is_complex());
}

bool is_float(const c10::IValue& value) { return value.isTensor() && holds_numbers(value.toTensor()); }

/// Why the argument does not apply to this call, or "". Called before it runs.
std::string objection(const c10::OperatorHandle& op, std::string_view name, c10::ArrayRef<c10::IValue> arguments) {
  const auto& schema = op.schema().arguments();
  const auto number = [&](const char* argument) -> double {
    for (size_t i = 0; i < schema.size(); ++i)
      if (schema[i].name() == argument && arguments[i].isScalar()) return arguments[i].toScalar().toDouble();
    return 1;
  };
  if (!kSums.contains(name) && !kMoves.contains(name)) return "is not known to bound its terms";
  if (number("alpha") < 0 || number("beta") < 0) return "subtracts (a negative factor)";
  // Terms must not cancel: all added arguments are >= 0, and all subtracted ones <= 0.
  const size_t taken = name == "sub" || name == "mse_loss" ? 1 : name == "mse_loss_backward" ? 2 : arguments.size();
  for (size_t i = 0; kSums.contains(name) && i < arguments.size(); ++i) {
    if (!is_float(arguments[i])) continue;
    if (arguments[i].toTensor().is_complex() && name != "add" && name != "sum")
      return "takes complex numbers, of whose products some are subtracted";
    const at::Tensor values = graph::in_pairs(arguments[i].toTensor());
    if (i == taken ? !at::le(values, 0).all().item<bool>() : !at::ge(values, 0).all().item<bool>())
      return i == taken ? "subtracts a number that is not <= 0"
                        : "reads a negative number: the run does not use absolute values";
  }
  if (name == "sub" && arguments[1].isScalar() && arguments[1].toScalar().toDouble() > 0)
    return "subtracts a number that is not <= 0";
  if (name == "pow" && !(arguments[1].isScalar() && arguments[1].toScalar().toDouble() >= 0 &&
                         std::nearbyint(arguments[1].toScalar().toDouble()) == arguments[1].toScalar().toDouble()))
    return "has an exponent that is not a whole number >= 0";
  if (name == "clamp" &&
      !(number("min") == -number("max") && number("max") >= 0 && std::nearbyint(number("max")) == number("max")))
    return "clamps to limits that are not one whole number with both signs";
  if (name == "div") {
    const at::Scalar by = arguments[1].isTensor() && arguments[1].toTensor().numel() == 1
                              ? arguments[1].toTensor().item()
                              : (arguments[1].isScalar() ? arguments[1].toScalar() : at::Scalar(0));
    int exponent;
    if (std::frexp(by.toDouble(), &exponent) != 0.5) return "divides by a number that is not a power of two";
  }
  return "";
}

}  // namespace

double exact_limit(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return 0x1p53;
    case at::kFloat:
      return 0x1p24;
    case at::kHalf:
      return 0x1p11;
    case at::kBFloat16:
      return 0x1p8;
    default:
      throw InputError(std::string("exact_limit: ") + at::toString(type) +
                       " is not one of Double, Float, Half, BFloat16");
  }
}

std::string why_not_exact(const Magnitude& magnitude, at::ScalarType type) {
  if (!magnitude.unproven.empty()) return magnitude.unproven;
  if (!magnitude.integral) return magnitude.fraction + ": a value that is not a multiple of 1.000000";
  const double limit = exact_limit(type);
  if (!(magnitude.max_abs <= limit))
    return magnitude.op + ": sums may reach " + std::to_string(magnitude.max_abs) + ", " + at::toString(type) +
           " is exact up to " + std::to_string(limit);
  return "";
}

void MagnitudeInterposer::see(const at::Tensor& tensor, const std::string& where) {
  if (!holds_numbers(tensor)) return;
  const at::Tensor values = graph::in_pairs(tensor.detach()).to(at::kDouble).contiguous();
  const double* const begin = values.const_data_ptr<double>();
  for (const double *value = begin, *const end = begin + values.numel(); value != end; ++value) {
    const double size = std::isfinite(*value) ? std::abs(*value) : std::numeric_limits<double>::infinity();
    if (size > result_.max_abs) {
      result_.max_abs = size;
      result_.op = where;
    }
    if (result_.integral && std::nearbyint(size) != size) {
      result_.integral = false;
      result_.fraction = where;
    }
  }
}

void MagnitudeInterposer::call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string& full_name = op.operator_name().name;
  const std::string_view name = rounding_name(full_name);
  const auto& schema = op.schema();
  const auto note = [&](const std::string& reason) {
    if (result_.unproven.empty() && !reason.empty()) result_.unproven = full_name + " " + reason;
  };
  if (name == "_conj" || name == "_neg_view") {  // what bounds a number bounds the negated one
    torch::jit::push(*stack, at::alias(torch::jit::pop(*stack).toTensor()));
    return;
  }
  // A result without floating numbers, or that is a view of a checked tensor, needs no check.
  const bool all_views = !schema.returns().empty() && std::ranges::all_of(schema.returns(), capture::is_view);
  if (all_views || name == "_unsafe_view" || name == "_reshape_alias") return op.callBoxed(stack);

  const auto arguments = torch::jit::last(*stack, schema.arguments().size());
  bool takes_float = false;
  if (!gives_no_value(name)) {
    for (const c10::IValue& argument : arguments) {
      capture::for_each_tensor(argument, [&](const at::Tensor& tensor) {
        if (!holds_numbers(tensor)) return;
        takes_float = true;
        // The new memory of a gradient appears here before it is written.
        if (name != "copy" && name != "fill" && name != "zero") see(tensor, full_name);
      });
    }
  }
  // A mean divides a sum, which must also be exact.
  const bool is_mean = name == "mean" || (name == "mse_loss" && arguments[2].toInt() == at::Reduction::Mean);
  const int64_t terms = is_mean ? arguments[0].toTensor().numel() : 0;
  const std::string reason = takes_float ? objection(op, name, arguments) : "";
  op.callBoxed(stack);
  if (gives_no_value(name)) return;
  bool gives_float = false;
  for (const c10::IValue& result : torch::jit::last(*stack, schema.returns().size())) {
    capture::for_each_tensor(result, [&](const at::Tensor& tensor) {
      if (!holds_numbers(tensor)) return;
      gives_float = true;
      see(tensor, full_name);
      if (terms > 1) see(tensor * (static_cast<double>(terms) / static_cast<double>(tensor.numel())), full_name);
      if (takes_float && kSums.contains(name) && !at::ge(graph::in_pairs(tensor), 0).all().item<bool>())
        note("returned a negative number: the run does not use absolute values");
    });
  }
  if (gives_float) note(reason);
}

}  // namespace plumbline::reference
