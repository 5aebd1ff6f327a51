#include "runtime/schedule/lowering/entries.h"
#include "runtime/schedule/lowering/passes.h"

namespace plumbline::schedule {
namespace {

using enum ActionType;

Action wait_of(const Action& send) {
  return {send.stage, send.type == SEND_F ? WAIT_SEND_F : WAIT_SEND_B, send.microbatch};
}

// The state of each send: a table by direction, stage and micro-batch.
enum class State : char { Unknown, Pending, Waited };

class Sends {
 public:
  explicit Sends(const Schedule& schedule)
      : schedule_(schedule), states_(std::size_t{2} * schedule.stages * schedule.microbatches, State::Unknown) {}

  /// The state of a send, or of the send that a wait waits for.
  State& operator[](const Action& action) {
    const bool forward = action.type == SEND_F || action.type == WAIT_SEND_F;
    return states_[slot(schedule_, action) * 2 + (forward ? 0 : 1)];
  }

 private:
  const Schedule& schedule_;
  std::vector<State> states_;
};

void register_send(Sends& sends, const Schedule& schedule, std::size_t rank, std::size_t position) {
  State& state = sends[schedule.ranks[rank][position]];
  if (state != State::Unknown) refuse_at(schedule, rank, position, "is sent already");
  state = State::Pending;
}

}  // namespace

Schedule add_send_waits(const Schedule& schedule) {
  require_in_place(schedule);
  Schedule result = schedule;
  Sends sends(schedule);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    std::vector<Action> actions;
    std::size_t position = 0;
    for_each_entry(schedule.ranks[rank], [&](Entry entry) {
      actions.insert(actions.end(), entry.begin(), entry.end());
      for (const Action& action : entry) {
        if (is_send(action.type)) register_send(sends, schedule, rank, position);
        ++position;
        if (action.type != B && action.type != I) continue;
        const Action send{action.stage, SEND_F, action.microbatch};
        if (sends[send] != State::Pending) continue;
        sends[send] = State::Waited;
        actions.push_back(wait_of(send));
      }
    });
    for (const Action& action : schedule.ranks[rank]) {
      if (is_send(action.type) && sends[action] == State::Pending) actions.push_back(wait_of(action));
    }
    result.ranks[rank] = std::move(actions);
  }
  return result;
}

void require_send_waits(const Schedule& schedule) {
  require_in_place(schedule);
  Sends sends(schedule);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& actions = schedule.ranks[rank];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (is_send(actions[i].type)) register_send(sends, schedule, rank, i);
      if (!is_wait_send(actions[i].type)) continue;
      State& state = sends[actions[i]];
      if (state == State::Unknown) refuse_at(schedule, rank, i, "there is no such send before it");
      if (state == State::Waited) refuse_at(schedule, rank, i, "was waited for already");
      state = State::Waited;
    }
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (is_send(actions[i].type) && sends[actions[i]] == State::Pending) {
        refuse_at(schedule, rank, i, "nothing waits for it");
      }
    }
  }
}

}  // namespace plumbline::schedule
