#include "conformance/run/folder/run_artifacts.h"

#include "conformance/judge/judge_files.h"
#include "conformance/recording/judge_recording.h"
#include "runtime/io/regular_file.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code none;
  for (const auto& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied, none))
    if (entry.symlink_status(none).type() == fs::file_type::regular) files.push_back(entry.path());
  return files;
}

fs::path output_of(const PlannedRun& run, const ReportFolder& report) {
  return report.job_output(run.id.ranks, transport_kind(run.id.transport).value());
}

RunConditions conditions_of(const PlannedRun& run, int microbatches, const BackendDescription& backend) {
  return {run.id.ranks, microbatches, run.id.transport == transport_name(TransportKind::Own), &backend};
}

std::string first_there(const std::vector<fs::path>& files, const ReportFolder& report) {
  std::error_code none;
  for (const fs::path& file : files)
    if (fs::exists(file, none)) return file.lexically_relative(report.path()).string();
  return {};
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
  if (backend.level == CaseLevel::Own) {
    const fs::path one = report.baseline_recording(item.id), several = report.recording(item, run.id.ranks);
    for (const fs::path& folder : {one, several})
      if (const std::string wrong = why_no_folder(report.results(), folder.lexically_relative(report.results()));
          !wrong.empty())
        return {.truth = reference::Truth::SameOrder, .status = Status::Error, .reason = one_line(wrong)};
    return judge_recording(one, several, run.id.ranks, backend.delivers);
  }
  return judge_files(judge, output_of(run, report), item, conditions_of(run, microbatches, backend));
}

std::string remove_artifacts(const PlannedRun& run, const ReportFolder& report) {
  const JobCase item = job_case(run);
  const fs::path out = output_of(run, report).filename();
  std::string left;
  for (const fs::path& folder :
       {result_path(out, item, 0).parent_path(), out / exported_case(item), backend_log(out, item).parent_path()})
    if (const std::string why = remove_below(report.results(), folder); left.empty()) left = why;
  return left;
}

std::string log_of(const PlannedRun& run, const ReportFolder& report) {
  return first_there({backend_log(output_of(run, report), job_case(run))}, report);
}

std::string log_around(const PlannedRun& run, const ReportFolder& report) {
  const fs::path out = output_of(run, report), baseline = report.job_output(1, TransportKind::Own);
  return first_there({backend_log(out, job_case(run)), backend_log(out),
                      backend_log(baseline, {run.id.case_id, kOneRank}), backend_log(baseline)},
                     report);
}

}  // namespace plumbline::conformance
