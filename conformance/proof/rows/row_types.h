// row_types(): one pass over the executions of one program on a whole batch and on its micro-batches, call by call. It
// gives every value its type by the lemmas of the operators, and says which losses and gradients separate.
//
// The types of operands are read from labels on the elements of memory, one for each element: the row that it belongs
// to, or that it is replicated or a sum. Views therefore need no rules. What a lemma says of an operand divided along
// one dimension is used only where the labels of the whole batch, cut to the rows of a micro-batch, are those of the
// micro-batch's own value, so a program that arranges rows differently in both does not pass.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "conformance/proof/rows/row_type.h"
#include "conformance/proof/rows/trace.h"

namespace plumbline::proof {

/// Why a value does not separate.
struct Cause {
  std::string what;  ///< "aten::native_batch_norm of layers.2: nothing is claimed ..."
  std::string op, module;
  size_t event = 0;
};

struct StepTypes {
  std::map<std::string, RowType> losses, gradients;
  std::vector<Share> shares;
  std::vector<Cause> causes;
  std::set<std::string> lemmas;  ///< of operators that were applied to rows or sums
  size_t values = 0;             ///< results of operators
  /// The causes that make the whole step another one: buffers that are updated, programs that part.
  std::vector<int> everywhere;
};

/// `rows[m]` is the number of rows of micro-batch m; there are at least two.
StepTypes row_types(const Trace& whole, const std::vector<const Trace*>& parts, const std::vector<int64_t>& rows);

}  // namespace plumbline::proof
