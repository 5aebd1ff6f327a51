#include "conformance/judge/judge_files.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "conformance/corpus/case_schedule.h"
#include "conformance/corpus/corpus.h"
#include "conformance/judge/rank_files.h"
#include "conformance/protocol/report_folder.h"
#include "conformance/protocol/schedule/chosen_schedule.h"
#include "runtime/graph/error_text.h"
#include "runtime/text/one_line.h"
#include "runtime/text/shortened.h"

namespace plumbline::conformance {
namespace {

/// A file may have results of kinds that are not compared, and larger elements than those expected.
constexpr uint64_t kTimesTheExpected = 8;

bool is_larger(const std::filesystem::path& file, uint64_t bytes) {
  std::error_code none;
  const uint64_t size = std::filesystem::file_size(file, none);
  return !none && size > bytes;
}

using Kinds = std::vector<reference::ResultKind>;

void add_reason(Finding& finding, const std::string& reason) {
  finding.reason += (finding.reason.empty() ? "" : "; ") + reason;
}

/// Judges the results of all ranks. Of two copies that differ, at least one is wrong: that one is judged, and named.
Finding judge_copies(Judge& judge, const reference::Case& c, const schedule::Schedule& schedule, Merged merged,
                     const Kinds& delivers) {
  Finding finding = judge.judge(c, schedule, merged.results, delivers);
  std::map<std::string, Contested>& contested = merged.contested;
  std::erase_if(contested, [&](const auto& item) {  // what is not compared
    const auto kind = reference::parse_result_key(item.first).kind;
    return !delivers.empty() && std::ranges::find(delivers, kind) == delivers.end();
  });
  if (contested.empty() || finding.status == Status::Error) return finding;
  std::set<std::string> wrong;  // of those that were kept
  for (const Difference& d : finding.all) wrong.insert(to_string(d.key));
  for (const auto& [key, copy] : contested) {
    if (wrong.contains(key)) continue;
    merged.results.erase(key);
    if (copy.other) merged.results.emplace(key, *copy.other);
  }
  finding = judge.judge(c, schedule, merged.results, delivers);
  if (finding.status != Status::Fail) finding.reason.clear();
  finding.status = Status::Fail;  // also if the copies are equal as numbers, or both within their bounds
  const auto first = finding.first ? contested.find(to_string(finding.first->key)) : contested.end();
  const auto& [key, told] = first == contested.end() ? *contested.begin() : *first;
  add_reason(finding, shortened(told.why));
  if (told.other) add_reason(finding, "judged: that of " + (wrong.contains(key) ? told.kept_from : told.other_from));
  return finding;
}

/// Results that are missing since a rank has none at all are not to be sought one by one.
void name_empty_file(Finding& finding, const std::vector<RankResults>& ranks) {
  const auto empty = std::ranges::find_if(ranks, [](const RankResults& rank) { return rank.results.empty(); });
  if (finding.first && finding.first->what == DifferenceKind::Missing && empty != ranks.end())
    add_reason(finding, "the file of " + empty->from + " has no tensors");
}

}  // namespace

std::vector<std::filesystem::path> rank_files(const std::filesystem::path& group, const JobCase& item,
                                              const RunConditions& run) {
  if (run.foreign) return named_as_results(group, item);
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
    if (run.foreign && run.backend != nullptr) demote(c, *run.backend, note);
    const schedule::Schedule schedule = case_schedule(c, ChosenSchedule{item.schedule, item.csv}, run.ranks);
    uint64_t most_bytes = kUsualResultBytes;
    if (std::ranges::any_of(files, [&](const std::filesystem::path& file) { return is_larger(file, most_bytes); }))
      most_bytes = std::max(most_bytes, kTimesTheExpected * judge.expected_bytes(c, schedule));
    const std::vector<RankResults> ranks = read_rank_files(group.parent_path(), files, most_bytes);
    Merged merged = merge_copies(ranks, {c.replicas, run.ranks / c.replicas});
    const bool is_bounded = c.truth == reference::Truth::Bounded;
    if (const std::string why = is_bounded ? judge.why_unbounded(c, schedule.stages) : ""; !why.empty()) {
      finding.status = Status::Skipped;
      finding.reason = note.empty() ? why : note + ", and " + why;
      return finding;
    }
    finding =
        judge_copies(judge, c, schedule, std::move(merged), run.backend == nullptr ? Kinds() : run.backend->delivers);
    if (!note.empty()) add_reason(finding, note);
    name_empty_file(finding, ranks);
  } catch (const std::exception& error) {
    finding.status = Status::Error;
    finding.reason = shortened(one_line(graph::error_text(error)));
  }
  if (finding.reason.empty()) finding.reason = note;
  return finding;
}

}  // namespace plumbline::conformance
