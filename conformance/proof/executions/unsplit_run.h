// The expected terms: the unsplit model, run micro-batch by micro-batch under plain autograd, and the sums that the
// case's contract prescribes for a schedule. No code of the engine, of the split or of the halved backward runs here.
#pragma once

#include <cstdint>

#include "conformance/proof/executions/observed_rank.h"
#include "reference/oracle/detached_run.h"

namespace plumbline::proof {

/// The terms of a run whose stages accumulate in these orders. Each micro-batch gives one gradient for every parameter
/// and stage, the sum of the uses in that stage; a copy of a stage adds those of its micro-batches in the order of its
/// backwards; copies are added by ascending stage, then by ascending copy. `recorder` must have recorded nothing.
RankTerms run_unsplit(const reference::Case& c, uint64_t seed, const reference::StageOrders& orders,
                      Recorder& recorder);

}  // namespace plumbline::proof
