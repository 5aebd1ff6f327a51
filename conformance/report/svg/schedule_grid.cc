#include "conformance/report/svg/schedule_grid.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace plumbline::conformance {
namespace {

std::string left_aligned(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, text.size()), ' ');
}

using GridRow = std::vector<std::string>;

std::size_t slot_of(double time) { return static_cast<std::size_t>(std::lround(time)); }

std::string cell_of(const schedule::Action& action) { return to_string(action) + (action.overlaps_next ? "&" : ""); }

// The first `slots` slots of a rank.
GridRow row_of(const std::vector<schedule::TimedAction>& actions, std::size_t slots) {
  GridRow row(slots, ".");
  for (const schedule::TimedAction& timed : actions) {
    const std::size_t begin = slot_of(timed.begin), end = slot_of(timed.end);
    for (std::size_t i = begin; i < std::min(end, slots); ++i) row[i] = i == begin ? cell_of(timed.action) : "=";
  }
  return row;
}

}  // namespace

std::string schedule_grid(const schedule::Trace& trace, const GridOptions& options) {
  // Only shown slots are built: the slots of a large schedule would take gigabytes.
  const auto most = static_cast<std::size_t>(std::max(options.most_lines, 1));
  const std::size_t ranks = trace.ranks.size(), shown_ranks = std::min(ranks, most);
  std::size_t slots = 0, cell = 0;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto& actions = trace.ranks[rank];
    if (!actions.empty()) slots = std::max(slots, slot_of(actions.back().end));
    for (std::size_t i = 0; rank < shown_ranks && i < actions.size(); ++i) {
      cell = std::max(cell, cell_of(actions[i].action).size());
    }
  }
  cell = std::max(cell, std::to_string(slots).size());
  const std::size_t label = ("rank " + std::to_string(shown_ranks == 0 ? 0 : shown_ranks - 1)).size() + 2;
  const std::size_t room = static_cast<std::size_t>(std::max(options.width, 0));
  const std::size_t per_block = std::max<std::size_t>(1, room > label ? (room - label) / (cell + 1) : 1);
  const std::size_t blocks = shown_ranks == 0 ? 0 : std::max<std::size_t>(1, most / shown_ranks);
  const std::size_t shown_slots = std::min(slots, blocks * per_block);
  std::vector<GridRow> rows;
  for (std::size_t rank = 0; rank < shown_ranks; ++rank) rows.push_back(row_of(trace.ranks[rank], shown_slots));

  std::string text;
  for (std::size_t slot = 0; slot < shown_slots; slot += per_block) {
    const std::size_t end = std::min(shown_slots, slot + per_block);
    const auto line = [&](std::string begin, const auto& cell_text) {
      begin = left_aligned(begin, label);
      for (std::size_t i = slot; i < end; ++i) begin += left_aligned(cell_text(i), cell + 1);
      begin.erase(begin.find_last_not_of(' ') + 1);
      text += begin + "\n";
    };
    if (slot > 0) text += "\n";
    line("slot", [](std::size_t i) { return std::to_string(i); });
    for (std::size_t rank = 0; rank < shown_ranks; ++rank) {
      line("rank " + std::to_string(rank), [&](std::size_t i) { return rows[rank][i]; });
    }
  }
  if (shown_ranks < ranks) {
    text += "(ranks " + std::to_string(shown_ranks) + " to " + std::to_string(ranks - 1) + " are not shown)\n";
  }
  if (shown_slots < slots) {
    text += "(slots " + std::to_string(shown_slots) + " to " + std::to_string(slots - 1) + " are not shown)\n";
  }
  return text;
}

}  // namespace plumbline::conformance
