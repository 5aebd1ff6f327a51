#include <cstdint>
#include <map>

#include "runtime/schedule/lowering/entries.h"
#include "runtime/schedule/lowering/passes.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

// The receives of one rank that were removed and not yet put back.
class Deferred {
 public:
  Deferred(const Schedule& schedule, const StageGraph& graph)
      : schedule_(schedule), graph_(graph), index_(std::size_t{2} * schedule.stages * schedule.microbatches, -1) {}

  void add(const Action& receive) {
    std::int32_t& index = index_of(receive);
    if (index >= 0) return;
    index = static_cast<std::int32_t>(receives_.size());
    for_each_peer_stage(schedule_, graph_, receive, [&](int stage) {
      Queue& queue = from_[schedule_.rank_of(stage, receive.microbatch)];
      if (queue.receives.empty() || queue.receives.back() != index) queue.receives.push_back(index);
    });
    receives_.push_back(receive);
  }

  /// Appends it to `actions` if it is deferred.
  void post(const Action& receive, std::vector<Action>& actions) {
    std::int32_t& index = index_of(receive);
    if (index < 0) return;
    index = -1;
    actions.push_back(receive);
  }

  /// Appends all deferred receives from that rank, in their order.
  void post_from(int rank, std::vector<Action>& actions) {
    const auto found = from_.find(rank);
    if (found == from_.end()) return;
    Queue& queue = found->second;
    for (; queue.next < queue.receives.size(); ++queue.next) post(receives_[queue.receives[queue.next]], actions);
  }

  /// Resets the state for the next rank. Returns the receives that no action used.
  std::vector<Action> finish() {
    std::vector<Action> left;
    for (const Action& receive : receives_) {
      if (index_of(receive) >= 0) left.push_back(receive);
      index_of(receive) = -1;
    }
    receives_.clear();
    from_.clear();
    return left;
  }

 private:
  struct Queue {
    std::vector<std::int32_t> receives;
    std::size_t next = 0;
  };

  std::int32_t& index_of(const Action& receive) {
    return index_[slot(schedule_, receive) * 2 + (receive.type == RECV_F ? 0 : 1)];
  }

  const Schedule& schedule_;
  const StageGraph& graph_;
  std::vector<std::int32_t> index_;  // in receives_, by direction, stage and micro-batch; -1: not deferred
  std::vector<Action> receives_;
  std::map<int, Queue> from_;
};

}  // namespace

Schedule defer_receives(const Schedule& schedule, const StageGraph& graph) {
  require_in_place(schedule);
  Schedule result = schedule;
  Deferred deferred(schedule, graph);
  for (int rank = 0; rank < static_cast<int>(schedule.ranks.size()); ++rank) {
    std::vector<Action> actions;
    for_each_entry(schedule.ranks[rank], [&](Entry entry) {
      if (is_receive(entry.front().type)) {
        deferred.add(entry.front());
        return;
      }
      if (is_send(entry.front().type)) {
        for_each_peer_stage(schedule, graph, entry.front(), [&](int stage) {
          const int peer = schedule.rank_of(stage, entry.front().microbatch);
          if (rank < peer) deferred.post_from(peer, actions);
        });
      }
      for (const Action& action : entry) {
        if (action.type == F) deferred.post({action.stage, RECV_F, action.microbatch}, actions);
        if (action.type == B || action.type == I) {
          deferred.post({action.stage, RECV_B, action.microbatch}, actions);
        }
      }
      actions.insert(actions.end(), entry.begin(), entry.end());
    });
    if (const std::vector<Action> left = deferred.finish(); !left.empty()) {
      refuse(schedule, "rank " + std::to_string(rank) + ": nothing after it uses " + to_string(left.front()));
    }
    result.ranks[rank] = std::move(actions);
  }
  return result;
}

}  // namespace plumbline::schedule
