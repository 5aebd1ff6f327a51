// The files of a run in its report folder, and their judgement: for `plumbline run` and for `plumbline check`, for
// cases and for a backend's custom models.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "conformance/judge/judge.h"
#include "conformance/plan/planned_run.h"
#include "conformance/protocol/report_folder.h"

namespace plumbline::conformance {

struct RunArtifacts {
  std::filesystem::path folder;  ///< with the run's results, or with its recording of a custom model
  /// The result files of a case (rank_files() in judge_files.h), or the existing files of a recording.
  std::vector<std::filesystem::path> files;
  /// Of the run on one rank with which a custom model's run is compared.
  std::vector<std::filesystem::path> baseline;
};

RunArtifacts artifacts_of(const PlannedRun& run, const ReportFolder& report, const BackendDescription& backend);

/// Judges the run by its files. `microbatches` as in with_microbatches().
Finding judge_artifacts(const PlannedRun& run, int microbatches, const ReportFolder& report,
                        const BackendDescription& backend, Judge& judge);

/// Deletes what the run left below results/: its results or its recording, its exported case, and its log. A custom
/// model's recording on one rank stays. Returns why something is left, see remove_below(); empty if nothing is.
std::string remove_artifacts(const PlannedRun& run, const ReportFolder& report);

/// The log of the run's backend, relative to the report folder; empty if it printed nothing.
std::string log_of(const PlannedRun& run, const ReportFolder& report);

/// log_of(), or else the log with what the backend printed outside of its runs, or else that of a custom model's run on
/// one rank: for a run that has failed without results.
std::string log_around(const PlannedRun& run, const ReportFolder& report);

}  // namespace plumbline::conformance
