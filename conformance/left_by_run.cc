#include "conformance/left_by_run.h"

#include "conformance/judge_files.h"
#include "conformance/judge_recording.h"
#include "conformance/own_models.h"
#include "conformance/protocol.h"
#include "conformance/session.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  if (!fs::exists(folder)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

LeftByRun left_by_model(const fs::path& report, const JobCase& item, int ranks, const BackendDescription& backend) {
  const fs::path one = one_rank_recording(report, item.id), own = recording_of(report, item, ranks);
  return {own, files_below(own), files_below(one), [=, &backend] {
            CaseVerdict verdict = judge_recording(one, own, ranks, backend.delivers);
            verdict.case_id = item.id;
            verdict.schedule = item.schedule;
            return verdict;
          }};
}

}  // namespace

LeftByRun left_by(const LeftWhere& where, const JobCase& item, int ranks, TransportKind transport,
                  const BackendDescription& backend, Judge& judge) {
  if (backend.level == CaseLevel::Own) return left_by_model(where.report, item, ranks, backend);
  const fs::path group = where.report / results_folder(ranks, transport);
  const RunCircumstances circumstances = {ranks, where.microbatches, transport == TransportKind::Own, &backend};
  return {result_path(group, item, 0).parent_path(), rank_files(group, item, circumstances), {}, [=, &judge] {
            return judge_files(judge, group, item, circumstances);
          }};
}

}  // namespace plumbline
