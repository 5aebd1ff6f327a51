// Which operators let a factor through, over the real numbers: op(k x) = k op(x). One lemma for each operator; the test
// holds each against LibTorch on whole numbers. A change of the table raises kLinearVersion.
#pragma once

#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

namespace plumbline::proof {

inline constexpr int kLinearVersion = 1;

struct Linear {
  /// Positions among the operands of a term: a factor of any of these operands is a factor of every result.
  std::vector<size_t> operands = {};
  /// Instead: a factor that all operands have in common is a factor of the result.
  bool jointly = false;
};

/// By operator with overload, or kind of term that proofs define themselves ("elements").
const std::map<std::string_view, Linear>& linear_operators();

}  // namespace plumbline::proof
