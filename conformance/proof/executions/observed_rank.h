// Observes one rank of the runtime from outside: names the leaves, notes places, and reads the terms of the results.
// The engine runs as always; the observer stands where faults of mutants stand (backend/fault.h), around them.
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

/// A fault that changes nothing but what `inner` (a mutant's, or an empty one) changes, and fills `out`. Install it
/// with run_case_on_rank() on the thread of the rank. The fault's transport is the caller's. All arguments must outlive
/// the fault.
conformance::Fault observed(const conformance::Fault& inner, Recorder& recorder, RankTerms& out);

}  // namespace plumbline::proof
