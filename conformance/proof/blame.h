// Blame: where two terms part. From a result that differs down to the first operator whose operands differ and are no
// longer results of the same operator, with the place in the run.
#pragma once

#include <string>

#include "conformance/proof/terms/occurrences.h"
#include "conformance/proof/terms/term.h"

namespace plumbline::proof {

struct TwoRuns {
  const Terms& terms;
  const Occurrences& expected;  ///< of the unsplit run
  const Occurrences& found;     ///< of the engine
};

/// One sentence for two different terms.
std::string blame(const TwoRuns& runs, const TermId& expected, const TermId& found);

/// "rows 4 to 5 of input 0", "parameter layers.2.weight", "aten::mm of micro-batch 2".
std::string describe(const TwoRuns& runs, const TermId& id);

}  // namespace plumbline::proof
