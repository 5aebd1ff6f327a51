// Lemmas about rows: what happens to a result of an operator when an operand is divided along a dimension. Each is a
// statement about one operator, held against LibTorch over small sizes (lemmas_test.cc); row_types.h applies them.
//
// A lemma gives every dimension of every operand and result a letter. Divide all operands that have a letter, at the
// same places, along its dimension. Then each result that has the letter is divided likewise: its parts are the results
// of the parts. Each result without the letter is the sum of the results of the parts. Two marks are no letters: '.' is
// a dimension of size 1 that is repeated, and 'X' is one along which nothing is claimed.
#pragma once

#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/proof/terms/value.h"

namespace plumbline::proof {

inline constexpr int kLemmasVersion = 1;

/// What a lemma may look at: a call without the content of its tensors.
struct OperatorCall {
  const c10::FunctionSchema& schema;
  const std::vector<c10::IValue>& arguments;   ///< of which tensors are not read
  std::vector<std::optional<Sizes>> operands;  ///< all tensors among the arguments, in order; nullopt: undefined
  std::vector<std::optional<Sizes>> results;
};

struct Letters {
  std::vector<std::string> operands, results;  ///< a letter for each dimension; of an undefined tensor empty
  /// Letters of the dimensions by whose sizes the results are divided: a part of a result then has the weight that its
  /// part of the dimension has.
  std::string averaged = {};
  /// The index of a result by which the others are divided, a sum (the count of targets in a mean): their parts then
  /// have the weights that the parts of this sum have.
  std::optional<size_t> divided_by_result = {};
  /// The index of an operand by which the results are divided. Each part has an operand of its own.
  std::optional<size_t> divided_by_operand = {};
  /// Indexes of operands on which no result depends.
  std::set<size_t> unread = {};
};

using RowLemma = Letters (*)(const OperatorCall&);

/// By functional name with overload.
const std::map<std::string_view, RowLemma>& row_lemmas();

}  // namespace plumbline::proof
