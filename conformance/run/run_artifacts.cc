#include "conformance/run/run_artifacts.h"

#include "conformance/judge/judge_files.h"
#include "conformance/recording/judge_recording.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

fs::path output_of(const PlannedRun& run, const ReportFolder& report) {
  return report.job_output(run.id.ranks, transport_kind(run.id.transport).value());
}

RunConditions conditions_of(const PlannedRun& run, int microbatches, const BackendDescription& backend) {
  return {run.id.ranks, microbatches, run.id.transport == transport_name(TransportKind::Own), &backend};
}

}  // namespace

RunArtifacts artifacts_of(const PlannedRun& run, const ReportFolder& report, const BackendDescription& backend) {
  const JobCase item = job_case(run);
  if (backend.level == CaseLevel::Own) {
    const fs::path own = report.recording(item, run.id.ranks);
    return {own, files_below(own), files_below(report.baseline_recording(item.id))};
  }
  const fs::path out = output_of(run, report);
  return {result_path(out, item, 0).parent_path(), rank_files(out, item, conditions_of(run, 0, backend)), {}};
}

Finding judge_artifacts(const PlannedRun& run, int microbatches, const ReportFolder& report,
                        const BackendDescription& backend, Judge& judge) {
  const JobCase item = job_case(run);
  if (backend.level == CaseLevel::Own)
    return judge_recording(report.baseline_recording(item.id), report.recording(item, run.id.ranks), run.id.ranks,
                           backend.delivers);
  return judge_files(judge, output_of(run, report), item, conditions_of(run, microbatches, backend));
}

}  // namespace plumbline::conformance
