// One run of a plan, as planned and as run.json records it. No torch.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "conformance/protocol/job.h"
#include "conformance/protocol/run_id.h"

namespace plumbline::conformance {

struct PlannedRun {
  RunId id;
  std::string csv = {};          ///< the text of a schedule that has no name
  std::string unsupported = {};  ///< why it cannot run; empty: it can

  bool operator==(const PlannedRun&) const = default;
};

inline std::set<RunId> ids_of(const std::vector<PlannedRun>& runs) {
  std::set<RunId> ids;
  for (const PlannedRun& run : runs) ids.insert(run.id);
  return ids;
}

inline JobCase job_case(const PlannedRun& run) { return {run.id.case_id, run.id.schedule, run.csv}; }

}  // namespace plumbline::conformance
