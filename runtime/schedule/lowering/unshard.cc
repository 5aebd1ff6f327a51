#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "runtime/schedule/lowering/entries.h"
#include "runtime/schedule/lowering/passes.h"
#include "runtime/text/number.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

// The next use of each stage of one rank's list, as the list is walked.
class Upcoming {
 public:
  explicit Upcoming(const std::vector<Action>& actions) : actions_(actions), next_use_(actions.size()) {
    for_each_entry(actions, [&](Entry entry) { entry_of_.insert(entry_of_.end(), entry.size(), entries_++); });
    std::map<int, std::size_t> first_use;
    for (std::size_t i = actions.size(); i-- > 0;) {
      const auto [found, is_new] = first_use.try_emplace(actions[i].stage, i);
      next_use_[i] = is_new ? actions.size() : found->second;
      found->second = i;
    }
    for (const auto& [stage, position] : first_use) uses_.insert(position);
  }

  // The next `count` distinct stages, and those that share the last one's entry.
  std::vector<int> stages(int count) const {
    std::vector<int> result;
    std::size_t last = 0;
    for (std::size_t position : uses_) {
      if (static_cast<int>(result.size()) >= count && entry_of_[position] != entry_of_[last]) break;
      result.push_back(actions_[position].stage);
      last = position;
    }
    return result;
  }

  void pass(std::size_t position) {
    uses_.erase(position);
    if (next_use_[position] < actions_.size()) uses_.insert(next_use_[position]);
  }

 private:
  const std::vector<Action>& actions_;
  std::vector<std::size_t> next_use_, entry_of_;
  std::size_t entries_ = 0;
  std::set<std::size_t> uses_;
};

std::vector<Action> with_unshards(const Schedule& schedule, int rank, int max_active, int lookahead) {
  const auto& actions = schedule.ranks[rank];
  std::vector<Action> result;
  std::vector<int> active;                         // in the order in which they were unsharded
  std::vector<std::size_t> kept(schedule.stages);  // by stage: the last entry, from 1, in whose window it was
  std::vector<bool> is_active(schedule.stages);
  Upcoming upcoming(actions);
  std::size_t number = 0, position = 0;
  for_each_entry(actions, [&](Entry entry) {
    ++number;
    std::set<int> needed;
    for (const Action& action : entry) needed.insert(action.stage);
    if (static_cast<int>(needed.size()) > max_active) {
      refuse(schedule, "rank " + std::to_string(rank) + ", position " + std::to_string(position) + ": " +
                           entry_text(entry) + " needs " + std::to_string(needed.size()) +
                           " stages at once; max_active_stages is " + std::to_string(max_active));
    }
    for (int stage : upcoming.stages(max_active)) kept[stage] = number;
    std::erase_if(active, [&](int stage) {
      if (kept[stage] == number) return false;
      result.push_back({stage, RESHARD, kNoMicrobatch});
      is_active[stage] = false;
      return true;
    });
    for (int stage : upcoming.stages(lookahead)) {
      if (is_active[stage]) continue;
      result.push_back({stage, UNSHARD, kNoMicrobatch});
      active.push_back(stage);
      is_active[stage] = true;
    }
    result.insert(result.end(), entry.begin(), entry.end());
    for (std::size_t i = 0; i < entry.size(); ++i) upcoming.pass(position++);
  });
  for (int stage : active) result.push_back({stage, RESHARD, kNoMicrobatch});
  return result;
}

}  // namespace

Schedule add_unshard_reshard(const Schedule& schedule, int max_active_stages, const std::vector<int>& lookahead) {
  require_in_place(schedule);
  if (lookahead.size() != schedule.ranks.size()) {
    refuse(schedule, "unshard_lookahead has " + std::to_string(lookahead.size()) + " numbers for " +
                         std::to_string(schedule.ranks.size()) + " ranks");
  }
  Schedule result = schedule;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    result.ranks[rank] = with_unshards(schedule, static_cast<int>(rank), max_active_stages, lookahead[rank]);
  }
  return result;
}

std::vector<int> unshard_lookahead(const std::string& text, int ranks, int max_active_stages) {
  if (max_active_stages < 1) {
    throw InputError("max_active_stages is " + std::to_string(max_active_stages) + "; at least 1 is needed");
  }
  std::vector<int> lookahead;
  if (text == "full") lookahead.assign(ranks, max_active_stages);
  if (text == "auto") {
    for (int rank = 0; rank < ranks; ++rank) lookahead.push_back(std::min(rank + 2, max_active_stages));
  }
  if (!lookahead.empty()) return lookahead;

  std::string_view rest = text;
  bool read = true;
  for (bool more = true; more && read;) {
    const std::size_t comma = rest.find(',');
    const std::optional<int> number = parse_number<int>(rest.substr(0, comma));
    read = number && *number >= 1 && *number <= max_active_stages;
    lookahead.push_back(number.value_or(0));
    more = comma != rest.npos;
    if (more) rest.remove_prefix(comma + 1);
  }
  if (read && lookahead.size() == 1) lookahead.assign(ranks, lookahead.front());
  if (!read || lookahead.size() != static_cast<std::size_t>(ranks)) {
    throw InputError("unshard_lookahead " + quoted_text(text) + "; expected full, auto, a number from 1 to " +
                     std::to_string(max_active_stages) + ", or one for each of " + std::to_string(ranks) +
                     " ranks, joined by commas");
  }
  return lookahead;
}

}  // namespace plumbline::schedule
