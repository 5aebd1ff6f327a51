// The plan of a run with a backend that runs only its custom models (CaseLevel::Own).
#pragma once

#include "conformance/plan/plan.h"
#include "conformance/protocol/protocol.h"

namespace plumbline::conformance {

/// The models that --case chooses, under each of the backend's schedules that --schedule chooses, on --ranks ranks.
/// Without --ranks: on 2, 4 and 8, or on 4 where --case is given, as many of these as the backend's file allows, or
/// else on its largest. Each run is compared with a run on one rank: throws InputError if --ranks names one, or if
/// the file does not allow one and another number. Also throws it for patterns without a match, and for --profile.
RunPlan plan_own_models(const RunOptions& options, const BackendDescription& backend);

}  // namespace plumbline::conformance
