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
  std::string letters;  ///< of its dimensions, from the lemma
};

/// A call in all executions, with functions of the pass over the program (row_types.cc).
struct AppliedCall {
  const std::vector<const TracedCall*>& calls;  ///< of the whole batch, then of each micro-batch
  Executions first_result;
  const std::vector<Rational>& shares_of_rows;  ///< by micro-batch
  /// Returns a type that is not separable. The text is its cause, without the subject, the operator: "mixes rows".
  std::function<RowType(const std::string&)> refuse;
  /// The tensors hold a number that adds up over the micro-batches. Returns the share of it that each micro-batch has;
  /// nullopt if the whole batch's number is 0 or unknown.
  std::function<std::optional<Power>(const Executions&)> share_of;
  /// Labels::resized()
  std::function<RowType(const RowType&, const Executions&)> resized;
};

/// Returns one type for each result of the call. All `operands` are defined, are read by the call, and are separable.
std::vector<RowType> apply_lemma(const AppliedCall& call, std::vector<Operand> operands, const Letters& letters);

}  // namespace plumbline::proof
