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
  size_t event = 0;  ///< index in the traces
};

struct StepTypes {
  std::map<std::string, RowType> losses, gradients;  ///< by name
  std::vector<Share> shares;
  std::vector<Cause> causes;
  std::set<std::string> lemmas;  ///< the operators whose lemmas were used
  size_t values = 0;             ///< the number of results of operators
  /// Indexes of the causes that make the whole step another one: buffers that are updated, programs that part.
  std::vector<int> everywhere;
};

/// `parts[m]` is the trace of micro-batch m, and `rows[m]` its number of rows; there are at least two micro-batches.
StepTypes row_types(const Trace& whole, const std::vector<const Trace*>& parts, const std::vector<int64_t>& rows);

}  // namespace plumbline::proof
