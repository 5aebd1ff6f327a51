// The number of floating-point operations of matrix-like calls, from the sizes of their tensors.
//
// The conventions are those of PyTorch's torch.utils.flop_counter: a multiply-add counts two, a bias counts nothing,
// and a causal mask does not reduce the count. There are two differences: mv, dot and recurrent layers count here, and
// the weight gradient of a grouped convolution counts the operations that it takes (PyTorch counts those of a
// convolution without groups).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace plumbline::flops {

using Sizes = std::vector<int64_t>;
/// A non-tensor argument of a type that a formula may read: a flag, a list of numbers or flags, or a string. An
/// argument of any other type is std::monostate.
using FlopConstant = std::variant<std::monostate, bool, std::vector<int64_t>, std::string>;

/// One call in the form that a formula reads.
struct CallSizes {
  /// tensors[a]: the sizes of each tensor in argument `a`; one entry for a tensor, several for a list of tensors, none
  /// for a constant or None.
  std::vector<std::vector<Sizes>> tensors;
  /// Indexed by argument, like `tensors`.
  std::vector<FlopConstant> constants;
  /// Number of elements of the first result; 0 if that is not a tensor.
  double result = 0;
};

struct FlopFormula {
  /// Returns the number of operations of one call. Throws std::out_of_range or std::bad_variant_access if the arguments
  /// do not match the operator's schema.
  double (*flops)(const CallSizes&);
  /// Argument positions. Each tensor in these arguments that requires a gradient costs the operations of the forward
  /// once more in the backward; all of them together cost them at most twice.
  std::vector<size_t> factors;
};

/// Returns the formula of an operator, valid until the program ends, or nullptr if the operator is not matrix-like.
/// `name` has no overload ("aten::mm"); in-place forms and backward operators have separate entries. Thread-safe.
const FlopFormula* find_flop_formula(const std::string& name);

}  // namespace plumbline::flops
