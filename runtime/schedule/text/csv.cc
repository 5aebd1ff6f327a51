#include "runtime/schedule/text/csv.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "runtime/schedule/text/placement.h"

namespace plumbline::schedule {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// The advice for a user who meets B and BW.
constexpr const char* kAskFor2024 =
    "in PyTorch's dialect of 2024 B is the input half of a backward and BW the whole; such a file is "
    "read by `plumbline schedule FILE --dialect 2024 --format compute`, which converts it";

// Removes and returns the text before the first `separator`, or all of it.
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

// 0BW3
bool is_whole_backward_of_2024(std::string_view cell) {
  const std::size_t kind = cell.find_first_not_of("0123456789");
  return kind != cell.npos && kind > 0 && cell.substr(kind).starts_with("BW") &&
         cell.find_first_not_of("0123456789", kind + 2) == cell.npos;
}

// ';' or a tab between cells, as some spreadsheets write; 0 when there is none. Within a group ';' is legal.
char foreign_separator(std::string_view line) {
  bool in_group = false;
  for (char c : line) {
    if (c == '(') in_group = true;
    if (c == ')') in_group = false;
    if (c == '\t' || (c == ';' && !in_group)) return c;
  }
  return 0;
}

// Builds a schedule from the text, row by row.
class CsvReader {
 public:
  CsvReader(const std::string& name, std::optional<Dialect> dialect) : dialect_(dialect) { schedule_.name = name; }

  void read_row(std::string_view line) {
    schedule_.ranks.emplace_back();
    cells_.emplace_back();
    if (const char separator = line.find(',') == line.npos ? foreign_separator(line) : '\0'; separator != '\0') {
      refuse(row() + ": cells are separated by " + (separator == ';' ? "';'" : "tabs") + "; write commas");
    }
    // A trailing comma ends an empty last cell, which is skipped like any empty cell.
    for (int cell = 0; !line.empty(); ++cell) {
      const std::string_view text = trim(take_until(line, ','));
      if (text.empty()) continue;
      try {
        read_cell(text);
      } catch (const InputError& error) {
        refuse(row() + ", cell " + std::to_string(cell + 1) + ": " + error.what());
      }
      cells_.back().resize(schedule_.ranks.back().size(), cell);
    }
    const std::vector<Action>& actions = schedule_.ranks.back();
    if (std::none_of(actions.begin(), actions.end(), [](const Action& action) { return is_compute(action.type); })) {
      refuse(row() + ": there is no F, B, I or W; every rank needs some");
    }
  }

  Schedule finish() {
    if (schedule_.ranks.empty()) refuse("there are no rows; a schedule has one for each rank");
    if (const auto action = dialect_ ? std::nullopt : trace_of_2024(schedule_)) {
      refuse("there is no I, but " + to_string(*action) + " as well as " +
             to_string({action->stage, ActionType::W, action->microbatch}) + ": " + kAskFor2024);
    }
    try {
      derive_placement(schedule_);
    } catch (const PlacementError& error) {
      refuse(row(error.rank) + ", cell " + std::to_string(cells_[error.rank][error.position] + 1) + ": " +
             error.what());
    } catch (const InputError& error) {
      refuse(error.what());
    }
    return std::move(schedule_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const { throw InputError(schedule_.name + ": " + reason); }

  static std::string row(std::size_t rank) {
    return "row " + std::to_string(rank + 1) + " (rank " + std::to_string(rank) + ")";
  }
  std::string row() const { return row(schedule_.ranks.size() - 1); }

  void read_cell(std::string_view text) {
    std::vector<Action>& actions = schedule_.ranks.back();
    if (dialect_ == Dialect::Torch2024) {
      actions.push_back(parse_action_of_2024(text));
      return;
    }
    if (is_whole_backward_of_2024(text)) {
      throw InputError("action " + quoted_text(text) + ": there is no kind 'BW'; " + kAskFor2024);
    }
    parse_entry(text, actions);
    if (dialect_ && *dialect_ < needed_dialect(actions.back().type)) {
      throw InputError(to_string(actions.back()) + ": the dialect of " + std::string(to_string(*dialect_)) +
                       " has no " + std::string(to_string(actions.back().type)) + "; it came with " +
                       std::string(to_string(needed_dialect(actions.back().type))));
    }
  }

  std::optional<Dialect> dialect_;
  Schedule schedule_;
  std::vector<std::vector<int>> cells_;  // of each action of each rank, counted from 0
};

}  // namespace

std::string to_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& actions : schedule.ranks) {
    for_each_entry(actions, [&](std::span<const Action> entry) {
      if (entry.data() != actions.data()) text += ",";
      text += entry_text(entry);
    });
    text += "\r\n";
  }
  return text;
}

std::string_view csv_format(const Schedule& schedule) {
  return has_communication(schedule) ? "compute_comms" : "compute_only";
}

Schedule parse_csv(std::string_view text, const std::string& name, std::optional<Dialect> dialect) {
  CsvReader reader(name, dialect);
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  // Editors end a file with empty lines.
  const std::size_t last = text.find_last_not_of(" \t\r\n");
  text = text.substr(0, last == text.npos ? 0 : last + 1);
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    if (line.ends_with('\r')) line.remove_suffix(1);
    reader.read_row(line);
  }
  return reader.finish();
}

}  // namespace plumbline::schedule
