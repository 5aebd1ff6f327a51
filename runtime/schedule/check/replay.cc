#include "runtime/schedule/check/replay.h"

#include <deque>
#include <optional>
#include <utility>

#include "runtime/schedule/check/buffers.h"
#include "runtime/schedule/check/needs.h"
#include "runtime/schedule/collectives.h"

namespace plumbline::schedule {
namespace {

class Player {
 public:
  Player(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index, const SendModel& sends)
      : schedule_(schedule),
        graph_(graph),
        index_(index),
        sends_(sends),
        needs_(schedule, graph, index),
        collectives_(schedule) {
    const std::size_t ranks = schedule.ranks.size();
    states_.resize(ranks);
    for (std::size_t rank = 0, offset = 0; rank < ranks; ++rank) {
      states_[rank].offset = offset;
      offset += schedule.ranks[rank].size();
      runnable_.push_back(static_cast<int>(rank));
    }
    first_waiter_.assign(action_count(schedule), -1);
    for (const Collectives::Operation& operation : collectives_.operations())
      operations_.push_back({.missing = collectives_.ranks_of(operation).size()});
    order_.reserve(first_waiter_.size());
    if (sends.buffers > 0 && sends.buffers < SendModel::kUnlimited) buffers_.emplace(schedule, graph, sends.buffers);
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
  /// An action on another or the same rank; position -1: that rank never executes it.
  struct Awaited {
    Action action;
    Place place;
  };

  struct RankState {
    std::size_t offset = 0;       // of its first action among all actions of all ranks
    int position = 0;             // the action it is at, or the first of the group it is at
    int member = 0;               // the action of that group whose needs are examined
    int needs = 0;                // how many of that action's needs are met
    int next_waiter = -1;         // the next rank that waits for the same action or operation
    bool sending = false;         // the SEND it is at has begun
    bool waits_for_post = false;  // it only lacks the receive of its message to continue
    int operation = -1;           // it waits for the end of this one; -1: for the action below
    Awaited waits_for;
  };

  struct OperationState {
    std::size_t missing = 0;  // the ranks that have not begun it
    int first_waiter = -1;    // the first rank that waits for its end, or -1
  };

  const std::vector<Action>& list(int rank) const { return schedule_.ranks[rank]; }
  int rank_of(const Action& action) const { return schedule_.rank_of(action.stage, action.microbatch); }
  bool finished(int rank) const { return static_cast<std::size_t>(states_[rank].position) == list(rank).size(); }

  // One past the actions that the rank executes together with its current one. Only computations appear in groups.
  int unit_end(int rank) const {
    const std::vector<Action>& actions = list(rank);
    std::size_t last = states_[rank].position;
    while (actions[last].overlaps_next && is_compute(actions[last].type) && last + 1 < actions.size() &&
           is_compute(actions[last + 1].type)) {
      ++last;
    }
    return static_cast<int>(last) + 1;
  }

  // False for a misplaced action.
  bool acts(int rank, int position) const {
    const Action& action = list(rank)[position];
    return index_.in_range(action) && rank_of(action) == rank && index_.position(action) == position;
  }

  Awaited awaited(const Action& action) const { return {action, {rank_of(action), index_.position(action)}}; }

  bool is_done(const Place& place) const {
    if (place.position < 0) return false;
    const RankState& state = states_[place.rank];
    return place.position < state.position || (place.position == state.position && state.sending);
  }
  bool is_done(const Action& action) const { return is_done(awaited(action).place); }

  void advance(int rank) {
    RankState& state = states_[rank];
    while (!finished(rank)) {
      const int end = unit_end(rank);
      if (!state.sending) {
        if (!needs_met(rank, end)) return;
        if (is_send(list(rank)[state.position].type) && acts(rank, state.position)) begin_send(rank);
      }
      if (const std::optional<Action> receive = awaited_receive(rank)) {
        state.waits_for = awaited(*receive);
        state.waits_for_post = true;
        return;
      }
      end_unit(rank, end);
    }
  }

  bool needs_met(int rank, int end) {
    RankState& state = states_[rank];
    for (; state.member < end; ++state.member, state.needs = 0) {
      if (!has_ended(rank, collectives_.needed_by(rank, state.member))) return false;
      if (!acts(rank, state.member)) continue;
      const Action& action = list(rank)[state.member];
      const int count = static_cast<int>(needs_.count(action));
      for (; state.needs < count; ++state.needs) {
        const std::optional<Action> need = needs_.at(action, state.needs);
        if (!need || is_done(*need)) continue;
        state.waits_for = awaited(*need);
        wait(rank);
        return false;
      }
    }
    return true;
  }

  // Otherwise `rank` waits until all ranks have begun the operation.
  bool has_ended(int rank, int number) {
    if (number < 0 || operations_[number].missing == 0) return true;
    states_[rank].operation = number;
    states_[rank].next_waiter = std::exchange(operations_[number].first_waiter, rank);
    return false;
  }

  void begin_operation(int number) {
    if (number < 0 || --operations_[number].missing > 0) return;
    for (int rank = operations_[number].first_waiter; rank >= 0; rank = states_[rank].next_waiter) {
      states_[rank].operation = -1;
      runnable_.push_back(rank);
    }
  }

  void begin_send(int rank) {
    RankState& state = states_[rank];
    const Action& send = list(rank)[state.position];
    state.sending = true;
    order_.push_back({rank, state.position});
    wake_waiters(state.offset + state.position);
    if (!buffers_) return;
    const bool gradient = send.type == ActionType::SEND_B;
    for (int other : gradient ? graph_.inputs(send.stage) : graph_.outputs(send.stage)) {
      const Action receive = receive_of(send, other);
      if (rank_of(receive) != rank && !is_done(receive)) buffers_->send(message(receive, send.stage));
    }
  }

  // The first receive that must be posted before `rank` leaves its current action.
  std::optional<Action> awaited_receive(int rank) const {
    if (sends_.buffers == SendModel::kUnlimited || !acts(rank, states_[rank].position)) return std::nullopt;
    Action send = list(rank)[states_[rank].position];
    if (!(sends_.blocking ? is_send(send.type) : is_wait_send(send.type))) return std::nullopt;
    if (send.type == ActionType::WAIT_SEND_F) send.type = ActionType::SEND_F;
    if (send.type == ActionType::WAIT_SEND_B) send.type = ActionType::SEND_B;
    for (int other : send.type == ActionType::SEND_F ? graph_.outputs(send.stage) : graph_.inputs(send.stage)) {
      const Action receive = receive_of(send, other);
      if (rank_of(receive) == rank || is_done(receive)) continue;
      if (!buffers_ || !buffers_->holds(message(receive, send.stage))) return receive;
    }
    return std::nullopt;
  }

  void end_unit(int rank, int end) {
    RankState& state = states_[rank];
    const int begin = state.position;
    const bool begun = state.sending;  // then the order already has it
    state.position = state.member = end;
    state.needs = 0;
    state.sending = false;
    for (int position = begin; position < end && !begun; ++position) {
      order_.push_back({rank, position});
      wake_waiters(state.offset + position);
      begin_operation(collectives_.begun_by(rank, position));
      if (is_receive(list(rank)[position].type) && acts(rank, position)) post(rank, list(rank)[position]);
    }
  }

  void post(int rank, const Action& receive) {
    for (int other :
         receive.type == ActionType::RECV_F ? graph_.inputs(receive.stage) : graph_.outputs(receive.stage)) {
      const int sender = schedule_.rank_of(other, receive.microbatch);
      if (sender == rank) continue;
      if (buffers_) buffers_->post(message(receive, other));
      if (!states_[sender].waits_for_post) continue;
      states_[sender].waits_for_post = false;
      runnable_.push_back(sender);
    }
  }

  static Action receive_of(const Action& send, int stage) {
    return {stage, send.type == ActionType::SEND_F ? ActionType::RECV_F : ActionType::RECV_B, send.microbatch};
  }

  static Message message(const Action& receive, int from_stage) {
    const bool gradient = receive.type == ActionType::RECV_B;
    const StageEdge edge = gradient ? StageEdge{receive.stage, from_stage} : StageEdge{from_stage, receive.stage};
    return {edge, receive.microbatch, gradient};
  }

  void wait(int rank) {
    RankState& state = states_[rank];
    const Place& place = state.waits_for.place;
    if (place.position < 0) return;  // no action will ever wake it
    int& first = first_waiter_[states_[place.rank].offset + place.position];
    state.next_waiter = first;
    first = rank;
  }

  void wake_waiters(std::size_t action) {
    for (int rank = first_waiter_[action]; rank >= 0; rank = states_[rank].next_waiter) runnable_.push_back(rank);
  }

  // What a blocked rank waits for; of an operation, the first rank that has not begun it.
  Awaited waited_for(int rank) const {
    const RankState& state = states_[rank];
    if (state.operation < 0) return state.waits_for;
    const Collectives::Operation& operation = collectives_.operations()[state.operation];
    Awaited first{{operation.stage, operation.type, kNoMicrobatch}, {}};
    auto begun = operation.begun_at.begin();
    for (const int holder : collectives_.ranks_of(operation)) {
      first.place = {holder, -1};
      if (begun != operation.begun_at.end() && begun->rank == holder) first.place = *begun++;
      if (!is_done(first.place)) break;
    }
    return first;
  }

  // Follows the waiting ranks from a blocked one, until an action that no rank executes or a rank seen before.
  std::string explain(int rank) const {
    std::vector<int> chain;
    std::vector<bool> met(states_.size());
    bool missing = false;
    while (!missing && !met[rank]) {
      met[rank] = true;
      chain.push_back(rank);
      const Place place = waited_for(rank).place;
      missing = place.position < 0;
      if (!missing) rank = place.rank;
    }
    // Only the ranks of the cycle matter, not those on the way to it.
    std::size_t first = 0;
    while (!missing && chain[first] != rank) ++first;
    std::string text = missing ? "deadlock: " : "deadlock, a cycle: ";
    for (std::size_t i = first; i < chain.size(); ++i) text += (i > first ? "; " : "") + explain_one(chain[i]);
    return text;
  }

  std::string explain_one(int rank) const {
    const RankState& state = states_[rank];
    const auto [action, place] = waited_for(rank);
    const std::string other = "rank " + std::to_string(place.rank);
    const int position = place.position;
    std::string text = describe_position(schedule_, {rank, state.waits_for_post ? state.position : state.member});
    if (state.waits_for_post) {
      text += " waits until " + other + " posts " + to_string(action);
      return text + (position < 0 ? ", which it never does" : " at position " + std::to_string(position));
    }
    text += " waits for " + to_string(action);
    return text + (position < 0 ? ", which " + other + " never does"
                                : " at " + other + ", position " + std::to_string(position));
  }

  const Schedule& schedule_;
  const StageGraph& graph_;
  const ActionIndex& index_;
  const SendModel sends_;
  const Needs needs_;
  const Collectives collectives_;
  std::optional<Buffers> buffers_;
  std::vector<RankState> states_;
  std::vector<OperationState> operations_;  // indexed as Collectives::operations()
  std::vector<int> first_waiter_;           // by action: the first rank that waits for it, or -1
  std::deque<int> runnable_;
  std::vector<Place> order_;
};

}  // namespace

Replay replay(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index, const SendModel& sends) {
  return Player(schedule, graph, index, sends).play();
}

}  // namespace plumbline::schedule
