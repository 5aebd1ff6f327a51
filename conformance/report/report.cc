#include "conformance/report/report.h"

#include <algorithm>

#include "runtime/schedule/orders/schedule_kinds.h"

namespace plumbline::conformance {

int exit_code(const RunReport& report) {
  if (!report.broken.empty()) return 1;
  bool any_pass = false;
  bool any_not_run = false;
  for (const Verdict& verdict : report.verdicts) {
    if (is_failure(verdict.finding.status)) return 1;
    any_pass |= verdict.finding.status == Status::Pass || verdict.finding.status == Status::XFail;
    any_not_run |= verdict.finding.status == Status::NotRun;
  }
  return any_pass && !any_not_run ? 0 : 3;
}

std::map<Status, int> count_statuses(const std::vector<Verdict>& verdicts) {
  std::map<Status, int> counts;
  for (const Verdict& verdict : verdicts) ++counts[verdict.finding.status];
  return counts;
}

void put_in_order(std::vector<std::string>& schedules) {
  const std::vector<std::string> known = schedule::schedule_names();
  std::ranges::stable_sort(schedules, {}, [&](const std::string& name) { return std::ranges::find(known, name); });
}

Matrix matrix_of(const std::vector<Verdict>& verdicts) {
  Matrix matrix;
  for (const Verdict& verdict : verdicts)
    if (std::find(matrix.schedules.begin(), matrix.schedules.end(), verdict.run.schedule) == matrix.schedules.end())
      matrix.schedules.push_back(verdict.run.schedule);
  put_in_order(matrix.schedules);
  std::map<std::string, size_t> row_of;
  for (const Verdict& verdict : verdicts) {
    const auto [place, is_new] = row_of.emplace(verdict.run.case_id, matrix.rows.size());
    if (is_new)
      matrix.rows.push_back(
          {verdict.run.case_id, verdict.title, {}, std::vector<std::vector<const Verdict*>>(matrix.schedules.size())});
    Matrix::Row& row = matrix.rows[place->second];
    row.truths.add(verdict.finding);
    const auto column = std::find(matrix.schedules.begin(), matrix.schedules.end(), verdict.run.schedule);
    auto& cell = row.cells[static_cast<size_t>(column - matrix.schedules.begin())];
    const bool worst =
        !cell.empty() && worse(cell.front()->finding.status, verdict.finding.status) != cell.front()->finding.status;
    cell.insert(worst ? cell.begin() : cell.end(), &verdict);
  }
  return matrix;
}

}  // namespace plumbline::conformance
