#include "conformance/run/left_by_run.h"

#include "conformance/judge/judge_files.h"
#include "conformance/recording/judge_recording.h"
#include "conformance/run/own_models.h"
#include "conformance/run/session.h"

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

fs::path group_of(const FinishedRun& run) { return run.report / results_folder(run.ranks, run.transport); }

RunCircumstances circumstances_of(const FinishedRun& run, const BackendDescription& backend) {
  return {run.ranks, run.microbatches, run.transport == TransportKind::Own, &backend};
}

}  // namespace

LeftByRun left_by(const FinishedRun& run, const BackendDescription& backend) {
  if (backend.level == CaseLevel::Own) {
    const fs::path own = recording_of(run.report, run.item, run.ranks);
    return {own, files_below(own), files_below(one_rank_recording(run.report, run.item.id))};
  }
  const fs::path group = group_of(run);
  return {
      result_path(group, run.item, 0).parent_path(), rank_files(group, run.item, circumstances_of(run, backend)), {}};
}

CaseVerdict judge_left(const FinishedRun& run, const BackendDescription& backend, Judge& judge) {
  if (backend.level != CaseLevel::Own)
    return judge_files(judge, group_of(run), run.item, circumstances_of(run, backend));
  CaseVerdict verdict = judge_recording(one_rank_recording(run.report, run.item.id),
                                        recording_of(run.report, run.item, run.ranks), run.ranks, backend.delivers);
  verdict.case_id = run.item.id;
  verdict.schedule = run.item.schedule;
  return verdict;
}

}  // namespace plumbline::conformance
