#include "conformance/mutants/kill_matrix.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "runtime/error.h"
#include "runtime/io/json_place.h"
#include "runtime/io/tensor_file.h"
#include "runtime/io/write_file.h"
#include "runtime/text/join.h"

namespace plumbline::conformance {
namespace {

constexpr std::pair<Kill, std::string_view> kNames[] = {{Kill::Untested, "untested"},
                                                        {Kill::NotApplicable, "not-applicable"},
                                                        {Kill::NeverHappened, "never-happened"},
                                                        {Kill::Survived, "survived"},
                                                        {Kill::Fail, "fail"},
                                                        {Kill::Error, "error"},
                                                        {Kill::Timeout, "timeout"}};

/// Each case once, in the order of the runs.
std::vector<std::string> cases_of(const KillMatrix& matrix) {
  std::vector<std::string> cases;
  for (const RunId& run : matrix.runs)
    if (std::find(cases.begin(), cases.end(), run.case_id) == cases.end()) cases.push_back(run.case_id);
  return cases;
}

/// The combined outcome of a case's runs: one kill outweighs any number of survivals.
Kill of_case(const KillMatrix& matrix, const MatrixRow& row, const std::string& id) {
  Kill together = Kill::Untested;
  bool tried = false, not_applicable = true;
  for (size_t i = 0; i < matrix.runs.size(); ++i) {
    if (matrix.runs[i].case_id != id) continue;
    const Kill cell = row.cells[i];
    if (is_kill(cell)) return cell;
    tried = tried || cell != Kill::Untested;
    not_applicable = not_applicable && cell == Kill::NotApplicable;
    if (cell != Kill::NotApplicable) together = std::max(together, cell);
  }
  return tried && not_applicable ? Kill::NotApplicable : together;
}

std::set<std::string> killing_cases(const KillMatrix& matrix, const MatrixRow& row) {
  std::set<std::string> cases;
  for (size_t i = 0; i < row.cells.size(); ++i)
    if (is_kill(row.cells[i])) cases.insert(matrix.runs[i].case_id);
  return cases;
}

std::string list(const std::vector<std::string>& names) { return names.empty() ? "none" : join(names); }

}  // namespace

std::string_view kill_name(Kill kill) {
  return std::find_if(std::begin(kNames), std::end(kNames), [&](const auto& n) { return n.first == kill; })->second;
}

char kill_symbol(Kill kill) { return ".-osXET"[static_cast<int>(kill)]; }

int MatrixRow::count(Kill kill) const { return static_cast<int>(std::count(cells.begin(), cells.end(), kill)); }
int MatrixRow::kills() const { return static_cast<int>(std::count_if(cells.begin(), cells.end(), is_kill)); }

std::vector<std::string> survivors(const KillMatrix& matrix) {
  std::vector<std::string> names;
  for (const MatrixRow& row : matrix.rows)
    if (row.kills() == 0) names.push_back(row.mutant);
  return names;
}

std::vector<std::string> killed_by_one_case(const KillMatrix& matrix) {
  std::vector<std::string> names;
  for (const MatrixRow& row : matrix.rows)
    if (killing_cases(matrix, row).size() == 1) names.push_back(row.mutant);
  return names;
}

std::vector<std::string> cases_that_kill_nothing(const KillMatrix& matrix) {
  std::vector<std::string> names;
  for (const std::string& id : cases_of(matrix)) {
    bool survived = false, killed = false;
    for (const MatrixRow& row : matrix.rows) {
      const Kill kill = of_case(matrix, row, id);
      survived = survived || kill == Kill::Survived;
      killed = killed || is_kill(kill);
    }
    if (survived && !killed) names.push_back(id);
  }
  return names;
}

std::string matrix_text(const KillMatrix& matrix) {
  std::ostringstream out;
  const std::vector<std::string> cases = cases_of(matrix);
  size_t width = 0;
  for (const MatrixRow& row : matrix.rows) width = std::max(width, row.mutant.size());
  for (size_t i = 0; i < cases.size(); ++i) out << (i < 9 ? " " : "") << i + 1 << " " << cases[i] << "\n";
  out << "\n" << std::string(width, ' ');
  for (size_t i = 0; i < cases.size(); ++i) out << (i < 9 ? "  " : " ") << i + 1;
  out << "\n";
  int killed = 0;
  for (const MatrixRow& row : matrix.rows) {
    out << row.mutant << std::string(width - row.mutant.size(), ' ');
    for (const std::string& id : cases) out << "  " << kill_symbol(of_case(matrix, row, id));
    out << "\n";
    killed += row.kills() > 0;
  }
  out << "\nX a result differs   E error   T timeout   s survived   o never happened   - not applicable   "
         ". not tried\n\n";
  out << killed << " of " << matrix.rows.size() << " mutants are killed\n";
  out << "survivors: " << list(survivors(matrix)) << "\n";
  out << "killed by one case only: " << list(killed_by_one_case(matrix)) << "\n";
  out << "cases that kill nothing: " << list(cases_that_kill_nothing(matrix)) << "\n";
  for (const auto& [run, reason] : matrix.broken)
    out << "BROKEN without a fault: " << to_string(matrix.runs[run]) << ": " << reason << "\n";
  return out.str();
}

void write_matrix(const std::filesystem::path& folder, const KillMatrix& matrix) {
  nlohmann::json runs = nlohmann::json::array(), rows = nlohmann::json::array(), broken = nlohmann::json::array();
  for (const RunId& run : matrix.runs)
    runs.push_back({{"case", run.case_id}, {"schedule", run.schedule}, {"ranks", run.ranks}});
  for (const MatrixRow& row : matrix.rows) {
    nlohmann::json cells = nlohmann::json::array(), reasons = nlohmann::json::array();
    for (const Kill cell : row.cells) cells.push_back(kill_name(cell));
    for (const auto& [run, reason] : row.reasons) reasons.push_back({{"run", run}, {"reason", reason}});
    rows.push_back({{"mutant", row.mutant}, {"what", row.what}, {"cells", cells}, {"reasons", reasons}});
  }
  for (const auto& [run, reason] : matrix.broken) broken.push_back({{"run", run}, {"reason", reason}});
  const nlohmann::json all = {{"schema", "plumbline-kill-matrix/1"},
                              {"runs", runs},
                              {"mutants", rows},
                              {"broken", broken},
                              {"survivors", survivors(matrix)},
                              {"killed_by_one_case", killed_by_one_case(matrix)},
                              {"cases_that_kill_nothing", cases_that_kill_nothing(matrix)}};
  write_file(folder / "kill-matrix.json", all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  write_file(folder / "kill-matrix.txt", matrix_text(matrix));
}

Killers killers_of(const KillMatrix& matrix) {
  Killers killers;
  for (const MatrixRow& row : matrix.rows) {
    std::vector<Killer>& mine = killers[row.mutant];
    for (const bool same_case_too : {false, true})
      for (size_t i = 0; i < row.cells.size() && mine.size() < 2; ++i) {
        const Killer killer{matrix.runs[i], row.cells[i]};
        const bool again = std::any_of(mine.begin(), mine.end(), [&](const Killer& k) {
          return same_case_too ? k == killer : k.run.case_id == killer.run.case_id;
        });
        if (is_kill(row.cells[i]) && !again) mine.push_back(killer);
      }
  }
  return killers;
}

void write_killers(const std::filesystem::path& path, const Killers& killers) {
  std::string text = "{\n";
  for (const auto& [mutant, list] : killers) {
    text += (text.size() > 2 ? ",\n " : " ") + nlohmann::json(mutant).dump() + ": [";
    for (size_t i = 0; i < list.size(); ++i)
      text += (i ? ",\n  " : "\n  ") + nlohmann::json({{"case", list[i].run.case_id},
                                                       {"schedule", list[i].run.schedule},
                                                       {"ranks", list[i].run.ranks},
                                                       {"by", kill_name(list[i].by)}})
                                           .dump();
    text += "]";
  }
  write_file(path, text + "\n}\n");
}

Killers read_killers(const std::filesystem::path& path) {
  const nlohmann::json json = parse_json(read_file(path), path.string());
  Killers killers;
  for (const auto& [mutant, kills] : JsonPlace(json, path.string()).members()) {
    std::vector<Killer>& list = killers[mutant];
    for (const JsonPlace& item : kills.items()) {
      item.expect_only({"case", "schedule", "ranks", "by"});
      const Kill by =
          std::array{Kill::Fail, Kill::Error, Kill::Timeout}[item["by"].one_of({"fail", "error", "timeout"})];
      list.push_back({{item["case"].text(), item["schedule"].text(), item["ranks"].small(1, 4096)}, by});
    }
  }
  return killers;
}

}  // namespace plumbline::conformance
