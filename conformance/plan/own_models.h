// Backends that run only models of their own (CaseLevel::Own): what of them is run, and on how many ranks.
#pragma once

#include "conformance/plan/plan.h"
#include "conformance/protocol/protocol.h"

namespace plumbline::conformance {

/// The models that --case chooses, under each of the backend's schedules that --schedule chooses, on --ranks ranks:
/// where no number is given on 2, 4 and 8, or on 4 where --case is, as many of these as the backend's file allows, or
/// else on its largest. Throws InputError for patterns without a match, one rank, a file that does not allow one rank,
/// and options that are about cases.
RunPlan plan_own_models(const RunOptions& options, const BackendDescription& backend);

}  // namespace plumbline::conformance
