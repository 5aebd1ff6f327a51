#include "conformance/judge/judge_files.h"

#include "conformance/corpus/corpus.h"
#include "conformance/judge/rank_files.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "runtime/graph/error_text.h"
#include "runtime/text/one_line.h"

namespace plumbline::conformance {

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
    const TensorMap results =
        merge_rank_files(run.foreign ? result_files_of_ranks(group, item, run.ranks) : rank_files(group, item, run));
    reference::Case c = with_microbatches(known, run.microbatches, note);
    if (run.foreign && run.backend != nullptr && demote(c, *run.backend, note) && c.dtype == reference::Dtype::F64) {
      finding.status = Status::Skipped;
      finding.reason = note + ", and float64 results have no more exact reference to bound them";
      return finding;
    }
    const schedule::Schedule schedule =
        make_schedule(ChosenSchedule{item.schedule, item.csv}, run.ranks, c.microbatches);
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
