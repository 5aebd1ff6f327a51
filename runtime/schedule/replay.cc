#include "runtime/schedule/replay.h"

#include <deque>
#include <optional>

namespace plumbline {
namespace {

class Player {
 public:
  Player(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index)
      : schedule_(schedule), graph_(graph), index_(index), lowered_(has_communication(schedule)) {
    const std::size_t ranks = schedule.ranks.size();
    states_.resize(ranks);
    for (std::size_t rank = 0, offset = 0; rank < ranks; ++rank) {
      states_[rank].offset = offset;
      offset += schedule.ranks[rank].size();
      runnable_.push_back(static_cast<int>(rank));
    }
    first_waiter_.assign(action_count(schedule), -1);
  }

  Replay play() {
    while (!runnable_.empty()) {
      const int rank = runnable_.front();
      runnable_.pop_front();
      advance(rank);
    }
    Replay result;
    result.order = std::move(order_);
    for (std::size_t rank = 0; rank < states_.size() && result.deadlock.empty(); ++rank) {
      if (!finished(static_cast<int>(rank))) result.deadlock = explain(static_cast<int>(rank));
    }
    return result;
  }

 private:
  struct RankState {
    std::size_t offset = 0;  // of its first action, all actions of all ranks counted
    int position = 0;        // the action it is at
    std::size_t needs = 0;   // how many of that action's needs are known to be met
    int next_waiter = -1;    // the next rank that waits for the same action
    std::optional<Action> waits_for;
  };

  bool finished(int rank) const {
    return static_cast<std::size_t>(states_[rank].position) == schedule_.ranks[rank].size();
  }

  bool is_done(const Action& action) const {
    const int position = index_.position(action);
    return position >= 0 && position < states_[schedule_.rank_of(action.stage, action.microbatch)].position;
  }

  // What must be done before `action`, one by one: its own producer, its own receive, then the neighbours'.
  std::size_t need_count(const Action& action) const {
    switch (action.type) {
      case ActionType::F:
        return 2 + graph_.inputs(action.stage).size();
      case ActionType::B:
      case ActionType::I:
        return 2 + graph_.outputs(action.stage).size();
      case ActionType::W:
      case ActionType::SEND_F:
      case ActionType::SEND_B:
        return 1;
      default:
        return 0;
    }
  }

  std::optional<Action> need(const Action& action, std::size_t number) const {
    const int stage = action.stage, m = action.microbatch;
    const ActionType type = action.type;
    if (number == 0) {
      switch (type) {
        case ActionType::B:
        case ActionType::I:
        case ActionType::SEND_F:
          return Action{stage, ActionType::F, m};
        case ActionType::W:
          return Action{stage, ActionType::I, m};
        case ActionType::SEND_B:
          return input_backward(index_, stage, m);
        default:
          return std::nullopt;
      }
    }
    const bool forward = type == ActionType::F;
    if (number == 1) {
      const ActionType receive = forward ? ActionType::RECV_F : ActionType::RECV_B;
      if (!lowered_ || !carries(schedule_, graph_, receive, stage, m)) return std::nullopt;
      return Action{stage, receive, m};
    }
    const int other = (forward ? graph_.inputs(stage) : graph_.outputs(stage))[number - 2];
    if (lowered_ && schedule_.rank_of(other, m) != schedule_.rank_of(stage, m)) {
      return Action{other, forward ? ActionType::SEND_F : ActionType::SEND_B, m};
    }
    return forward ? Action{other, ActionType::F, m} : input_backward(index_, other, m);
  }

  void advance(int rank) {
    RankState& state = states_[rank];
    while (!finished(rank)) {
      const Action& action = schedule_.ranks[rank][state.position];
      if (index_.in_range(action) && schedule_.rank_of(action.stage, action.microbatch) == rank) {
        const std::size_t count = need_count(action);
        for (; state.needs < count; ++state.needs) {
          state.waits_for = need(action, state.needs);
          if (state.waits_for && !is_done(*state.waits_for)) return wait(rank);
        }
      }
      order_.push_back({rank, state.position});
      wake_waiters(state.offset + state.position);
      ++state.position;
      state.needs = 0;
    }
  }

  void wait(int rank) {
    RankState& state = states_[rank];
    const Action& action = *state.waits_for;
    const int position = index_.position(action);
    if (position < 0) return;  // nobody will ever wake it
    int& first = first_waiter_[states_[schedule_.rank_of(action.stage, action.microbatch)].offset + position];
    state.next_waiter = first;
    first = rank;
  }

  void wake_waiters(std::size_t action) {
    for (int rank = first_waiter_[action]; rank >= 0; rank = states_[rank].next_waiter) runnable_.push_back(rank);
  }

  // Follows who waits for whom from a rank that stands still, until an action nobody does or a rank met before.
  std::string explain(int rank) const {
    std::vector<int> chain;
    std::vector<bool> met(states_.size());
    std::string ending;
    while (ending.empty() && !met[rank]) {
      met[rank] = true;
      chain.push_back(rank);
      const Action& action = *states_[rank].waits_for;
      const int other = schedule_.rank_of(action.stage, action.microbatch);
      if (index_.position(action) < 0) {
        ending = ", which rank " + std::to_string(other) + " never does";
      } else {
        rank = other;
      }
    }
    // In a cycle only the ranks of the cycle matter, not those on the way to it.
    std::size_t first = 0;
    while (ending.empty() && chain[first] != rank) ++first;
    std::string text = ending.empty() ? "deadlock, a cycle: " : "deadlock: ";
    for (std::size_t i = first; i < chain.size(); ++i) {
      const RankState& state = states_[chain[i]];
      const Action& action = *state.waits_for;
      text += (i > first ? "; " : "") + describe_position(schedule_, {chain[i], state.position}) + " waits for " +
              to_string(action);
      const int position = index_.position(action);
      const int other = schedule_.rank_of(action.stage, action.microbatch);
      if (position >= 0) text += " at rank " + std::to_string(other) + ", position " + std::to_string(position);
    }
    return text + ending;
  }

  const Schedule& schedule_;
  const StageGraph& graph_;
  const ActionIndex& index_;
  const bool lowered_;
  std::vector<RankState> states_;
  std::vector<int> first_waiter_;  // by action: the first of the ranks that wait for it, or -1
  std::deque<int> runnable_;
  std::vector<Step> order_;
};

}  // namespace

Replay replay(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index) {
  return Player(schedule, graph, index).play();
}

std::string describe_position(const Schedule& schedule, const Step& step) {
  return "rank " + std::to_string(step.rank) + ", position " + std::to_string(step.position) + " (" +
         to_string(schedule.ranks[step.rank][step.position]) + ")";
}

}  // namespace plumbline
