#include "conformance/judge/judge_files.h"

#include <algorithm>

#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/rank_files.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "runtime/graph/error_text.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {
namespace {

/// A file may have results of kinds that are not compared, and larger elements than those expected.
constexpr uint64_t kTimesTheExpected = 8;

bool is_larger(const std::filesystem::path& file, uint64_t bytes) {
  std::error_code none;
  const uint64_t size = std::filesystem::file_size(file, none);
  return !none && size > bytes;
}

}  // namespace

std::vector<std::filesystem::path> rank_files(const std::filesystem::path& group, const JobCase& item,
                                              const RunConditions& run) {
  if (run.foreign) return result_files(group, item);
  std::vector<std::filesystem::path> files;
  for (int r = 0; r < run.ranks; ++r) files.push_back(result_path(group, item, r));
  return files;
}

Finding judge_files(Judge& judge, const std::filesystem::path& group, const JobCase& item, const RunConditions& run) {
  Finding finding;
  std::string note;
  try {
    const reference::Case& known = find_case(item.id);
    finding.truth = known.truth;
    const std::vector<std::filesystem::path> files =
        run.foreign ? result_files_of_ranks(group, item, run.ranks) : rank_files(group, item, run);
    reference::Case c = with_microbatches(known, run.microbatches, note);
    const bool is_demoted = run.foreign && run.backend != nullptr && demote(c, *run.backend, note);
    const schedule::Schedule schedule = case_schedule(c, ChosenSchedule{item.schedule, item.csv}, run.ranks);
    uint64_t most_bytes = kUsualResultBytes;
    if (std::ranges::any_of(files, [&](const std::filesystem::path& file) { return is_larger(file, most_bytes); }))
      most_bytes = std::max(most_bytes, kTimesTheExpected * judge.expected_bytes(c, schedule));
    const TensorMap results =
        merge_rank_files(group.parent_path(), files, {c.replicas, run.ranks / c.replicas}, most_bytes);
    if (is_demoted && c.dtype == reference::Dtype::F64) {
      finding.status = Status::Skipped;
      finding.reason = note + ", and float64 results have no more exact reference to bound them";
      return finding;
    }
    finding = judge.judge(c, schedule, results,
                          run.backend == nullptr ? std::vector<reference::ResultKind>() : run.backend->delivers);
  } catch (const std::exception& error) {
    finding.status = Status::Error;
    finding.reason = one_line(graph::error_text(error));
  }
  if (finding.reason.empty()) finding.reason = note;
  return finding;
}

}  // namespace plumbline::conformance
