#include "conformance/report/schedule_grid.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace plumbline {
namespace {

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

using Row = std::vector<std::string>;

// What stands in each slot.
std::vector<Row> slots_of(const Trace& trace) {
  std::size_t slots = 0;
  for (const auto& actions : trace.ranks) {
    if (!actions.empty()) slots = std::max(slots, static_cast<std::size_t>(std::lround(actions.back().end)));
  }
  std::vector<Row> rows;
  for (const auto& actions : trace.ranks) {
    Row& row = rows.emplace_back(slots, ".");
    for (const TimedAction& timed : actions) {
      const auto begin = static_cast<std::size_t>(std::lround(timed.begin));
      const auto end = static_cast<std::size_t>(std::lround(timed.end));
      for (std::size_t i = begin; i < end; ++i) row[i] = "=";
      if (begin < end) row[begin] = to_string(timed.action) + (timed.action.overlaps_next ? "&" : "");
    }
  }
  return rows;
}

}  // namespace

std::string schedule_grid(const Trace& trace, const GridOptions& options) {
  const std::vector<Row> rows = slots_of(trace);
  const std::size_t slots = rows.empty() ? 0 : rows[0].size();
  std::size_t cell = std::to_string(slots).size();
  for (const Row& row : rows) {
    for (const std::string& text : row) cell = std::max(cell, text.size());
  }
  const std::string longest = "rank " + std::to_string(rows.empty() ? 0 : rows.size() - 1);
  const std::size_t label = longest.size() + 2;
  const std::size_t room = static_cast<std::size_t>(std::max(options.width, 0));
  const std::size_t per_block = std::max<std::size_t>(1, room > label ? (room - label) / (cell + 1) : 1);
  const auto most = static_cast<std::size_t>(std::max(options.most_lines, 1));
  const std::size_t shown_ranks = std::min(rows.size(), most);

  std::string text;
  std::size_t lines = 0, slot = 0;
  for (; slot < slots && (slot == 0 || lines + shown_ranks <= most); slot += per_block) {
    const std::size_t end = std::min(slots, slot + per_block);
    const auto line = [&](std::string begin, const auto& cell_text) {
      begin = padded(begin, label);
      for (std::size_t i = slot; i < end; ++i) begin += padded(cell_text(i), cell + 1);
      begin.erase(begin.find_last_not_of(' ') + 1);
      text += begin + "\n";
    };
    if (slot > 0) text += "\n";
    line("slot", [](std::size_t i) { return std::to_string(i); });
    for (std::size_t rank = 0; rank < shown_ranks; ++rank, ++lines) {
      line("rank " + std::to_string(rank), [&](std::size_t i) { return rows[rank][i]; });
    }
  }
  if (shown_ranks < rows.size()) {
    text += "(" + std::to_string(rows.size() - shown_ranks) + " more ranks are not shown)\n";
  }
  if (slot < slots) {
    text += "(slots " + std::to_string(slot) + " to " + std::to_string(slots - 1) + " are not shown)\n";
  }
  return text;
}

}  // namespace plumbline
