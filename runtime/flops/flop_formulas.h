// The number of floating-point operations of matrix-like calls, from the sizes of their tensors.
//
// The conventions are those of PyTorch's torch.utils.flop_counter: a multiply-add counts two, a bias nothing, a causal
// mask saves nothing. Unlike there, mv, dot and recurrent layers count, and the gradient of a grouped convolution's
// weight counts its real number (there, that of one without groups).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace plumbline::flops {

using Sizes = std::vector<int64_t>;
/// A non-tensor argument, if a formula reads it: a flag, a list of numbers or of flags, a text. Anything else is
/// std::monostate.
using FlopConstant = std::variant<std::monostate, bool, std::vector<int64_t>, std::string>;

/// One call in the form that a formula reads.
struct CallSizes {
  /// By argument: one entry for a tensor, one each for a list of them, none for a constant or None.
  std::vector<std::vector<Sizes>> tensors;
  /// By argument.
  std::vector<FlopConstant> constants;
  /// The number of elements of the first result.
  double result = 0;
};

struct FlopFormula {
  double (*flops)(const CallSizes&);
  /// Each tensor among these arguments (by position) that requires a gradient costs as many operations again in
  /// backward, but all together at most twice as many.
  std::vector<size_t> factors;
};

/// `name` is the operator's without overload ("aten::mm"; in-place forms have their own entries). nullptr for operators
/// that are not matrix-like. Includes those that only a backward calls.
const FlopFormula* find_flop_formula(const std::string& name);

}  // namespace plumbline::flops
