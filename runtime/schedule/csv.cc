#include "runtime/schedule/csv.h"

#include <map>
#include <set>
#include <utility>

#include "runtime/error.h"

namespace plumbline {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& reason) { throw InputError(name + ": " + reason); }

// Removes and returns what stands before the first `separator`, or all of it.
std::string_view take_until(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return taken;
}

std::string_view trim(std::string_view cell) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!cell.empty() && is_blank(cell.front())) cell.remove_prefix(1);
  while (!cell.empty() && is_blank(cell.back())) cell.remove_suffix(1);
  if (cell.size() >= 2 && cell.front() == '"' && cell.back() == '"') cell = cell.substr(1, cell.size() - 2);
  return cell;
}

// The smallest number >= 0 that is not in `numbers`, where that is below the largest one; else -1.
int find_gap(const std::set<int>& numbers) {
  int expected = 0;
  for (int number : numbers) {
    if (number != expected) return expected;
    ++expected;
  }
  return -1;
}

// Rows of text, one after the other, to a schedule.
class Reader {
 public:
  explicit Reader(const std::string& name) { schedule_.name = name; }

  void read_row(std::string_view line) {
    const std::size_t row = schedule_.ranks.size();
    schedule_.ranks.emplace_back();
    // A trailing comma ends an empty last cell, which is skipped like any empty cell.
    for (std::size_t cell = 0; !line.empty(); ++cell) {
      const std::string_view text = trim(take_until(line, ','));
      if (text.empty()) continue;
      try {
        add(parse_action(text));
      } catch (const InputError& error) {
        refuse(schedule_.name, "row " + std::to_string(row + 1) + " (rank " + std::to_string(row) + "), cell " +
                                   std::to_string(cell + 1) + ": " + error.what());
      }
    }
    if (schedule_.ranks.back().empty()) {
      refuse(schedule_.name, "row " + std::to_string(row + 1) + " (rank " + std::to_string(row) +
                                 "): there is no action; every rank needs some");
    }
  }

  Schedule finish() {
    if (schedule_.ranks.empty()) refuse(schedule_.name, "there are no rows; a schedule has one for each rank");
    if (microbatches_.empty()) refuse(schedule_.name, "there is no F, B, I or W in any row");
    std::set<int> stages;
    for (const auto& [stage, rank] : rank_of_stage_) {
      stages.insert(stage);
      schedule_.rank_of_stage.push_back(rank);
    }
    refuse_gap(stages, "stage");
    refuse_gap(microbatches_, "micro-batch");
    schedule_.stages = static_cast<int>(stages.size());
    schedule_.microbatches = static_cast<int>(microbatches_.size());
    return std::move(schedule_);
  }

 private:
  void add(const Action& action) {
    const int rank = static_cast<int>(schedule_.ranks.size()) - 1;
    if (is_compute(action.type)) {
      const int other = rank_of_stage_.try_emplace(action.stage, rank).first->second;
      if (other != rank) {
        throw InputError(to_string(action) + ": stage " + std::to_string(action.stage) + " is on rank " +
                         std::to_string(other) + " already (row " + std::to_string(other + 1) +
                         "); a stage belongs to one rank");
      }
      microbatches_.insert(action.microbatch);
    }
    schedule_.ranks.back().push_back(action);
  }

  void refuse_gap(const std::set<int>& numbers, const std::string& what) const {
    const int gap = find_gap(numbers);
    if (gap < 0) return;
    refuse(schedule_.name, what + " " + std::to_string(gap) + " has no F, B, I or W, but " + what + " " +
                               std::to_string(*numbers.rbegin()) + " has; they are numbered from 0 without gaps");
  }

  Schedule schedule_;
  std::map<int, int> rank_of_stage_;
  std::set<int> microbatches_;
};

}  // namespace

std::string to_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.ranks) {
    const char* separator = "";
    for (const Action& action : actions) {
      (text += separator) += to_string(action);
      separator = ",";
    }
    text += "\r\n";
  }
  return text;
}

Schedule parse_csv(std::string_view text, const std::string& name) {
  Reader reader(name);
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    reader.read_row(line);
  }
  return reader.finish();
}

}  // namespace plumbline
