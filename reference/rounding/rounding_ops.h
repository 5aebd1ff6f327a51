// The rounding error inside each operator: the table behind rounding.h.
//
// Every `name` below is a result of rounding_name(), and `arguments` are those of the operator's schema. An operator
// missing from the table counts as a kernel with inner roundings, whose reduction length is guessed from its shapes:
// its bound may be somewhat too large, but is never missing.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <string_view>

namespace plumbline::reference {

enum class RoundingKind {
  None,         ///< moves and selects
  Single,       ///< one rounding of each result
  Contraction,  ///< multilinear: results are sums of products of elements of the tensor arguments
  Kernel,       ///< anything else
};

/// Kernel for an operator that the table lacks.
RoundingKind rounding_kind(std::string_view name);

/// "aten::add_" -> "add". The result refers to `operator_name`.
std::string_view rounding_name(const std::string& operator_name);

/// For a contraction: the number of terms in each element of `result`, which is the result at position `index`.
double contraction_terms(std::string_view name, c10::ArrayRef<c10::IValue> arguments, size_t index,
                         const at::Tensor& result);

/// For a kernel: the length of its longest reduction; 1 if `pointwise`, that is, if the operator has that tag.
double kernel_reduction(std::string_view name, c10::ArrayRef<c10::IValue> arguments, bool pointwise);

/// For a kernel that subtracts nearly equal numbers internally: for each element of its first result, the size of the
/// subtracted value (times its number of roundings). Undefined for any other kernel.
at::Tensor cancelled_size(std::string_view name, c10::ArrayRef<c10::IValue> arguments);

}  // namespace plumbline::reference
