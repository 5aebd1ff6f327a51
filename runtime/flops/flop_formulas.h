// How many floating-point operations the calls of matrix kind take, by the sizes of their tensors.
//
// The conventions are those of PyTorch's torch.utils.flop_counter: a multiplication with its addition counts two, a
// bias nothing, a causal mask saves nothing. Different from it, mv and dot count, and so do recurrent layers, and the
// gradient of a grouped convolution's weight counts what it takes (there, that of one without groups).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace plumbline::flops {

using Sizes = std::vector<int64_t>;
/// An argument that is no tensor, as far as a formula reads it: a flag, a list of numbers or of flags, a text. Anything
/// else is std::monostate.
using FlopConstant = std::variant<std::monostate, bool, std::vector<int64_t>, std::string>;

/// One call as a formula sees it.
struct CallSizes {
  /// By argument: one entry for a tensor, one each for a list of them, none for a constant or None.
  std::vector<std::vector<Sizes>> tensors;
  /// By argument.
  std::vector<FlopConstant> constants;
  /// How many elements the first result has.
  double result = 0;
};

struct FlopFormula {
  double (*flops)(const CallSizes&);
  /// Each tensor among these arguments (by position) that requires a gradient costs as many operations again in
  /// backward, but all together no more than twice as many.
  std::vector<size_t> factors;
};

/// `name` is the operator's without overload ("aten::mm"; in-place forms are found under their own). nullptr for
/// operators that are not of matrix kind. Also knows those that only a backward calls.
const FlopFormula* find_flop_formula(const std::string& name);

}  // namespace plumbline::flops
