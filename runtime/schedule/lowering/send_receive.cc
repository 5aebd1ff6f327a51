#include <queue>
#include <utility>

#include "runtime/schedule/lowering/entries.h"
#include "runtime/schedule/lowering/passes.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

// All ranks take turns. PyTorch tries every rank in every round; here a rank that must wait is tried again when it
// receives something, in the round in which that would have been sent.
class Turns {
 public:
  Turns(const Schedule& schedule, const StageGraph& graph)
      : schedule_(schedule),
        graph_(graph),
        result_(schedule),
        next_(schedule.ranks.size()),
        waits_(schedule.ranks.size()) {
    for (auto& actions : result_.ranks) actions.clear();
    const std::size_t slots = static_cast<std::size_t>(schedule.stages) * schedule.microbatches;
    for (Direction* direction : {&forward_, &backward_}) {
      direction->done.resize(slots);
      direction->posted.resize(slots);
      direction->arrived.resize(slots);
    }
  }

  Schedule run() {
    for (int rank = 0; rank < static_cast<int>(schedule_.ranks.size()); ++rank) queue_if_any(0, rank);
    while (!queue_.empty()) {
      const auto [round, rank] = queue_.top();
      queue_.pop();
      take_turn(round, rank);
    }
    for (std::size_t rank = 0; rank < next_.size(); ++rank) {
      if (next_[rank] == schedule_.ranks[rank].size()) continue;
      refuse(schedule_, "rank " + std::to_string(rank) + ", position " + std::to_string(next_[rank]) + " (" +
                            entry_text(entry(static_cast<int>(rank))) + ") never gets what it needs");
    }
    return std::move(result_);
  }

 private:
  struct Direction {
    std::vector<bool> done;    // the computation that produces the values sent this way
    std::vector<bool> posted;  // the receive of the values from this way
    std::vector<int> arrived;  // how many peers have sent theirs
  };

  static bool is_backward(const Action& action) { return action.type == B || action.type == I; }

  Entry entry(int rank) const {
    const auto& actions = schedule_.ranks[rank];
    return Entry(actions).subspan(next_[rank], group_end(actions, next_[rank]) - next_[rank]);
  }

  void queue_if_any(int round, int rank) {
    if (next_[rank] < schedule_.ranks[rank].size()) queue_.emplace(round, rank);
  }

  // All inputs from stages of this rank are made, and all inputs from other ranks are sent.
  bool is_ready(const Action& action) const {
    if (action.type != F && !is_backward(action)) return true;
    const Direction& direction = action.type == F ? forward_ : backward_;
    const int rank = schedule_.rank_of(action.stage, action.microbatch);
    int remote = 0;
    for (int stage : action.type == F ? graph_.inputs(action.stage) : graph_.outputs(action.stage)) {
      if (schedule_.rank_of(stage, action.microbatch) != rank) {
        ++remote;
      } else if (!direction.done[slot(schedule_, {stage, action.type, action.microbatch})]) {
        return false;
      }
    }
    return direction.arrived[slot(schedule_, action)] >= remote;
  }

  void set_done(const Action& action, bool done) {
    if (action.type == F) forward_.done[slot(schedule_, action)] = done;
    if (is_backward(action)) backward_.done[slot(schedule_, action)] = done;
  }

  // Members may use the results of earlier members.
  bool try_to_do(Entry entry) {
    for (std::size_t i = 0; i < entry.size(); ++i) {
      if (!is_ready(entry[i])) {
        for (const Action& earlier : entry.first(i)) set_done(earlier, false);
        return false;
      }
      set_done(entry[i], true);
    }
    return true;
  }

  void take_turn(int round, int rank) {
    const Entry now = entry(rank);
    waits_[rank] = !try_to_do(now);
    if (waits_[rank]) return;
    auto& actions = result_.ranks[rank];
    actions.insert(actions.end(), now.begin(), now.end());
    for (const Action& action : now) {
      if (action.type == F) send({action.stage, SEND_F, action.microbatch}, round, rank);
      if (is_backward(action)) send({action.stage, SEND_B, action.microbatch}, round, rank);
    }
    next_[rank] += now.size();
    queue_if_any(round + 1, rank);
  }

  void send(const Action& action, int round, int rank) {
    bool added = false;
    for_each_peer_stage(schedule_, graph_, action, [&](int stage) {
      if (!std::exchange(added, true)) result_.ranks[rank].push_back(action);
      const Action receive = receive_of(action, stage);
      Direction& direction = action.type == SEND_F ? forward_ : backward_;
      const int peer = schedule_.rank_of(stage, action.microbatch);
      const std::size_t at = slot(schedule_, receive);
      if (!direction.posted[at]) result_.ranks[peer].push_back(receive);
      direction.posted[at] = true;
      ++direction.arrived[at];
      if (std::exchange(waits_[peer], false)) queue_.emplace(peer > rank ? round : round + 1, peer);
    });
  }

  const Schedule& schedule_;
  const StageGraph& graph_;
  Schedule result_;
  std::vector<std::size_t> next_;
  std::vector<char> waits_;  // tried in vain
  Direction forward_, backward_;
  using Turn = std::pair<int, int>;  // round, rank
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> queue_;
};

}  // namespace

Schedule add_send_receive(const Schedule& schedule, const StageGraph& graph) {
  require_in_place(schedule);
  return Turns(schedule, graph).run();
}

}  // namespace plumbline::schedule
