#include "conformance/report/text.h"

#include <algorithm>

#include "runtime/text/counted.h"
#include "runtime/text/one_line.h"
#include "runtime/text/significant.h"

namespace plumbline::conformance {
namespace {

std::string padded(const std::string& text, size_t width) {
  return text.size() < width ? text + std::string(width - text.size(), ' ') : text;
}

std::string right_aligned(const std::string& text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string symbol(Status status, bool colour) {
  const std::string plain(1, status_symbol(status));
  if (!colour) return plain;
  const char* code = status == Status::Pass ? "32" : is_failure(status) ? "1;31" : "33";
  return "\x1b[" + std::string(code) + "m" + plain + "\x1b[0m";
}

bool any_failure(const Matrix::Row& row) {
  return std::ranges::any_of(row.cells, [](const std::vector<const Verdict*>& cell) {
    return std::ranges::any_of(cell, [](const Verdict* verdict) { return is_failure(verdict->finding.status); });
  });
}

/// "2.1..3.4" over the ranks, in milliseconds.
std::string range(const std::vector<RankTime>& times, double RankTime::* member) {
  if (times.empty()) return "-";
  double low = times.front().*member;
  double high = low;
  for (const RankTime& time : times) {
    low = std::min(low, time.*member);
    high = std::max(high, time.*member);
  }
  return fixed(1e3 * low, 1) + ".." + fixed(1e3 * high, 1);
}

}  // namespace

std::string matrix_text(const std::vector<Verdict>& verdicts, TextOptions options) {
  Matrix matrix = matrix_of(verdicts);
  if (options.only_failures) std::erase_if(matrix.rows, [](const Matrix::Row& row) { return !any_failure(row); });
  if (matrix.rows.empty()) return "";
  size_t name_width = 4;
  for (const Matrix::Row& row : matrix.rows) name_width = std::max(name_width, one_line(row.case_id).size());
  std::vector<std::string> headings;
  size_t total = name_width;
  for (const std::string& schedule : matrix.schedules) {
    headings.push_back(schedule.empty() ? "-" : one_line(schedule));
    total += 2 + headings.back().size();
  }
  const bool numbered = total > static_cast<size_t>(std::max(options.columns, 0));
  if (numbered)
    for (size_t i = 0; i < headings.size(); ++i) headings[i] = std::to_string(i + 1);

  std::string line = padded("case", name_width);
  for (const std::string& heading : headings) line += "  " + heading;
  std::string text = line + "\n";
  for (const Matrix::Row& row : matrix.rows) {
    line = padded(one_line(row.case_id), name_width);
    for (size_t i = 0; i < headings.size(); ++i) {
      const size_t before = (headings[i].size() - 1) / 2;  // the symbol is centred in its column
      line += "  " + std::string(before, ' ');
      line += row.cells[i].empty() ? " " : symbol(row.cells[i].front()->finding.status, options.colour);
      line += std::string(headings[i].size() - 1 - before, ' ');
    }
    text += without_trailing_spaces(line) + "\n";
  }
  if (numbered) {
    text += "\n";
    for (size_t i = 0; i < headings.size(); ++i) text += headings[i] + " = " + one_line(matrix.schedules[i]) + "\n";
  }
  return text;
}

std::string summary_text(const std::vector<Verdict>& verdicts, bool colour) {
  if (verdicts.empty()) return "no cases\n";
  const std::map<Status, int> counts = count_statuses(verdicts);
  std::string line;
  for (const Status status : all_statuses) {
    const auto found = counts.find(status);
    if (found == counts.end()) continue;
    line += (line.empty() ? "" : "   ") + symbol(status, colour) + " " + std::string(status_name(status)) + " " +
            std::to_string(found->second);
  }
  return line + "\n";
}

std::string reasons_text(const std::vector<Verdict>& verdicts) {
  constexpr size_t kMostShown = 10;
  std::string text;
  for (const Status status : {Status::Unsupported, Status::Skipped, Status::NotRun}) {
    std::map<std::string, int> runs;
    int all = 0;
    for (const Verdict& verdict : verdicts)
      if (verdict.finding.status == status) ++all, ++runs[one_line(verdict.finding.reason)];
    if (all == 0) continue;
    std::vector<std::pair<std::string, int>> reasons(runs.begin(), runs.end());
    std::ranges::stable_sort(reasons, std::ranges::greater(), &std::pair<std::string, int>::second);
    const size_t width = std::to_string(reasons.front().second).size() + 2;
    text += std::string(status_name(status)) + " " + std::to_string(all) + ":\n";
    int rest = all;
    for (size_t i = 0; i < std::min(reasons.size(), kMostShown); ++i) {
      text += right_aligned(std::to_string(reasons[i].second), width) + "  " + reasons[i].first + "\n";
      rest -= reasons[i].second;
    }
    if (rest > 0)
      text += right_aligned(std::to_string(rest), width) + "  for " + std::to_string(reasons.size() - kMostShown) +
              " other reasons (report.json)\n";
  }
  return text;
}

std::string failure_text(const Verdict& verdict, const std::filesystem::path& report) {
  return sentence(verdict) + (verdict.log.empty() ? "" : " (see " + one_line((report / verdict.log).string()) + ")") +
         (verdict.repro.empty() ? "" : "\n  repeat: " + verdict.repro);
}

std::string throughput_text(const std::vector<Throughput>& throughput, unsigned cores) {
  if (throughput.empty()) return "";
  std::vector<std::vector<std::string>> rows = {{"schedule", "workload", "ranks", "micro-batches", "step ms",
                                                 "per second", "bubble", "ideal", "step/ideal", "busy ms",
                                                 "waiting ms"}};
  for (const Throughput& t : throughput)
    rows.push_back({one_line(t.schedule), one_line(t.workload), std::to_string(t.ranks), std::to_string(t.microbatches),
                    fixed(1e3 * t.step_seconds, 2), fixed(t.microbatches_per_second, 1), percent(t.bubble_measured),
                    percent(t.bubble_ideal), fixed(t.ratio_to_ideal_step, 3), range(t.rank_times, &RankTime::busy),
                    range(t.rank_times, &RankTime::waiting)});
  std::vector<size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i)
      line += (i == 0 ? "" : "  ") + (i < 2 ? padded(row[i], widths[i]) : right_aligned(row[i], widths[i]));
    text += without_trailing_spaces(line) + "\n";
  }
  int ranks = 0;
  for (const Throughput& t : throughput) ranks = std::max(ranks, t.ranks);
  if (cores > 0 && static_cast<unsigned>(ranks) > cores)
    text += std::to_string(ranks) + " ranks share " + counted(cores, "core") +
            ": in stages of a model, a rank's wait for a core counts as bubble\n";
  return text;
}

}  // namespace plumbline::conformance
