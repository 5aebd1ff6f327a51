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

std::string text_of(const Action& action) { return to_string(action) + (action.overlaps_next ? "&" : ""); }

std::size_t slot_of(double time) { return static_cast<std::size_t>(std::lround(time)); }

// How many slots there are.
std::size_t slots_of(const Trace& trace) {
  std::size_t slots = 0;
  for (const auto& actions : trace.ranks) {
    if (!actions.empty()) slots = std::max(slots, slot_of(actions.back().end));
  }
  return slots;
}

// What stands in the first `slots` slots of a rank.
Row row_of(const std::vector<TimedAction>& actions, std::size_t slots) {
  Row row(slots, ".");
  for (const TimedAction& timed : actions) {
    const std::size_t begin = slot_of(timed.begin), end = std::min(slots, slot_of(timed.end));
    for (std::size_t i = begin; i < end; ++i) row[i] = i == begin ? text_of(timed.action) : "=";
  }
  return row;
}

}  // namespace

std::string schedule_grid(const Trace& trace, const GridOptions& options) {
  const std::size_t ranks = trace.ranks.size(), slots = slots_of(trace);
  std::size_t cell = std::to_string(slots).size();
  for (const auto& actions : trace.ranks) {
    for (const TimedAction& timed : actions) cell = std::max(cell, text_of(timed.action).size());
  }
  const std::string longest = "rank " + std::to_string(ranks == 0 ? 0 : ranks - 1);
  const std::size_t label = longest.size() + 2;
  const std::size_t room = static_cast<std::size_t>(std::max(options.width, 0));
  const std::size_t per_block = std::max<std::size_t>(1, room > label ? (room - label) / (cell + 1) : 1);
  const auto most = static_cast<std::size_t>(std::max(options.most_lines, 1));
  const std::size_t shown_ranks = std::min(ranks, most);
  const std::size_t blocks = std::max<std::size_t>(1, most / std::max<std::size_t>(1, shown_ranks));
  // What is not shown is not made: of 10 000 ranks it would be far more than fits into memory.
  const std::size_t shown_slots = std::min(slots, blocks * per_block);
  std::vector<Row> rows;
  for (std::size_t rank = 0; rank < shown_ranks; ++rank) rows.push_back(row_of(trace.ranks[rank], shown_slots));

  std::string text;
  for (std::size_t slot = 0; slot < shown_slots; slot += per_block) {
    const std::size_t end = std::min(shown_slots, slot + per_block);
    const auto line = [&](std::string begin, const auto& cell_text) {
      begin = padded(begin, label);
      for (std::size_t i = slot; i < end; ++i) begin += padded(cell_text(i), cell + 1);
      begin.erase(begin.find_last_not_of(' ') + 1);
      text += begin + "\n";
    };
    if (slot > 0) text += "\n";
    line("slot", [](std::size_t i) { return std::to_string(i); });
    for (std::size_t rank = 0; rank < shown_ranks; ++rank) {
      line("rank " + std::to_string(rank), [&](std::size_t i) { return rows[rank][i]; });
    }
  }
  if (shown_ranks < ranks) text += "(" + std::to_string(ranks - shown_ranks) + " more ranks are not shown)\n";
  if (shown_slots < slots) {
    text += "(slots " + std::to_string(shown_slots) + " to " + std::to_string(slots - 1) + " are not shown)\n";
  }
  return text;
}

}  // namespace plumbline
