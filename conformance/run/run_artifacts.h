// The files of a run in the folder of its report, and how they are judged: the same for the run that has just ended and
// for `plumbline check`, for cases and for a backend's own models.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/plan/planned_run.h"
#include "conformance/protocol/report_folder.h"

namespace plumbline::conformance {

struct RunArtifacts {
  std::filesystem::path folder;
  /// Of a case those that are expected; of an own model those that exist.
  std::vector<std::filesystem::path> files;
  /// Of the run on one rank that an own model's is compared with.
  std::vector<std::filesystem::path> baseline;
};

RunArtifacts artifacts_of(const PlannedRun& run, const ReportFolder& report, const BackendDescription& backend);

/// `microbatches` as in with_microbatches().
Finding judge_artifacts(const PlannedRun& run, int microbatches, const ReportFolder& report,
                        const BackendDescription& backend, Judge& judge);

}  // namespace plumbline::conformance
