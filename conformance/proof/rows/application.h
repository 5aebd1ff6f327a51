// apply_lemma(): the types of the results of one call, from those of its operands and a lemma about its operator.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/proof/rows/labels.h"
#include "conformance/proof/rows/lemmas.h"
#include "conformance/proof/rows/row_type.h"
#include "conformance/proof/rows/trace.h"

namespace plumbline::proof {

/// One operand of a call in all executions.
struct Operand {
  Executions tensors;
  RowType type;
  std::string letters;  ///< of the lemma
};

/// A call in all executions, first of the whole batch, and what its place in the program gives.
struct AppliedCall {
  const std::vector<const TracedCall*>& calls;
  Executions first_result;
  const std::vector<Rational>& shares_of_rows;
  /// Makes a cause of a sentence that goes on after the operator's name.
  std::function<RowType(const std::string&)> refuse;
  /// The share that each micro-batch has of a sum, of which tensors hold the numbers; nullopt if the sum is 0.
  std::function<std::optional<Power>(const Executions&)> share_of;
  /// Labels::resized()
  std::function<RowType(const RowType&, const Executions&)> resized;
};

/// `operands` are defined, are read by the call, and are not NotSeparable. One type for each result of the call.
std::vector<RowType> apply_lemma(const AppliedCall& call, std::vector<Operand> operands, const Letters& letters);

}  // namespace plumbline::proof
