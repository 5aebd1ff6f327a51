// Blame: explains why a result has another term than expected. It follows the operands that differ, from the result
// down to the first place where the operators, their arguments, the addends of a sum or the leaves differ.
#pragma once

#include <string>

#include "conformance/proof/terms/occurrences.h"
#include "conformance/proof/terms/term.h"

namespace plumbline::proof {

struct TwoRuns {
  const Terms& terms;
  const Occurrences& expected;  ///< of the unsplit run
  const Occurrences& found;     ///< of the engine's run
};

/// One sentence about two different terms: the place in the engine's run, and the difference there.
std::string blame(const TwoRuns& runs, const TermId& expected, const TermId& found);

/// A term in words: "rows 4 to 5 of input 0", "parameter layers.2.weight", "aten::mm of micro-batch 2".
std::string describe(const TwoRuns& runs, const TermId& id);

}  // namespace plumbline::proof
