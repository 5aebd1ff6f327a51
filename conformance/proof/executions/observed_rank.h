// Observes one rank of the runtime from outside: names the leaves of terms, tells the recorder which action runs, and
// reads the terms of the results. The observer is a fault (backend/fault.h) that changes nothing, so the engine runs as
// always.
#pragma once

#include <map>
#include <string>

#include "conformance/backend/fault.h"
#include "conformance/proof/terms/recorder.h"

namespace plumbline::proof {

/// Terms by result key.
using ResultTerms = std::map<std::string, TermId>;

/// What one rank delivered.
struct RankTerms {
  ResultTerms results;
  Log log;
};

/// Names a batch's inputs and target as leaves. `step` is the position in Case::steps.
void name_batch(Recorder& recorder, int step, const models::Batch& batch);

/// Names the parameters and buffers of a stage as leaves.
void name_state(Recorder& recorder, const split::StageState& state);

/// The terms of the results that a proof compares: all but partial sums, norms and what hooks see.
ResultTerms terms_of(Recorder& recorder, const reference::Results& results);

/// Returns `inner` (a mutant's fault, or an empty one) with the observer around it, which fills `out`. Pass it to
/// run_case_on_rank() on the thread of the rank. All arguments must outlive it.
conformance::Fault observed(const conformance::Fault& inner, Recorder& recorder, RankTerms& out);

}  // namespace plumbline::proof
