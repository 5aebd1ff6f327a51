// Which operators are linear, over the real numbers: op(k x + y) = k op(x) + op(y). One lemma for each operator; the
// test holds each against LibTorch on whole numbers. A change of the table raises kLinearVersion.
#pragma once

#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

namespace plumbline::proof {

inline constexpr int kLinearVersion = 2;

struct Linear {
  /// Positions among the operands of a term: every result is linear in each of these operands alone.
  std::vector<size_t> operands = {};
  /// Instead: the results are linear in all operands together.
  bool jointly = false;
};

/// By operator with overload, or kind of term that proofs define themselves ("elements").
const std::map<std::string_view, Linear>& linear_operators();

}  // namespace plumbline::proof
