// The files of a run in its report folder, and their judgement: for `plumbline run` and for `plumbline check`, for
// cases and for a backend's custom models.
#pragma once

#include <filesystem>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/plan/planned_run.h"
#include "conformance/protocol/report_folder.h"

namespace plumbline::conformance {

struct RunArtifacts {
  std::filesystem::path folder;
  /// Of a case the expected files; of a custom model the existing ones.
  std::vector<std::filesystem::path> files;
  /// Of the run on one rank with which a custom model's run is compared.
  std::vector<std::filesystem::path> baseline;
};

RunArtifacts artifacts_of(const PlannedRun& run, const ReportFolder& report, const BackendDescription& backend);

/// `microbatches` as in with_microbatches().
Finding judge_artifacts(const PlannedRun& run, int microbatches, const ReportFolder& report,
                        const BackendDescription& backend, Judge& judge);

}  // namespace plumbline::conformance
