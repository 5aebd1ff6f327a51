#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "runtime/schedule/check/check_parts.h"
#include "runtime/schedule/check/replay.h"

namespace plumbline::schedule {
namespace {

// Walks one rank that has an OFFLOAD or RELOAD. Kinds, ranks and repetitions are checked elsewhere (check_actions).
class OffloadCheck {
 public:
  OffloadCheck(const Schedule& schedule, const ActionIndex& index, int rank, CheckReport& report)
      : schedule_(schedule), index_(index), rank_(rank), report_(report) {}

  void run() {
    const std::vector<Action>& actions = schedule_.ranks[rank_];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (index_.in_range(actions[i])) visit(actions[i], static_cast<int>(i));
    }
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].type != ActionType::OFFLOAD || !index_.in_range(actions[i])) continue;
      const Life& life = life_of(actions[i]);
      if (life.offloaded != static_cast<int>(i) || life.used) continue;
      complain(static_cast<int>(i), "no " + text(actions[i], ActionType::RELOAD) + " follows it");
    }
  }

 private:
  // The activations of one stage and micro-batch: the positions of the actions so far, -1 if there was none.
  struct Life {
    int made = -1;       // F
    int done = -1;       // B or W
    int offloaded = -1;  // the OFFLOAD that no RELOAD followed yet
    bool used = false;   // while they were away; reported once, in place of the missing RELOAD
  };

  static std::string text(const Action& of, ActionType type) {
    return to_string(Action{of.stage, type, of.microbatch});
  }
  Life& life_of(const Action& action) {
    return lives_[static_cast<std::int64_t>(action.stage) * schedule_.microbatches + action.microbatch];
  }
  void complain(int position, const std::string& reason) {
    report_.add(describe_position(schedule_, {rank_, position}) + ": " + reason);
  }

  void visit(const Action& action, int position) {
    Life& life = life_of(action);
    switch (action.type) {
      case ActionType::F:
        life.made = position;
        break;
      case ActionType::B:
      case ActionType::I:
      case ActionType::W:
        if (life.offloaded >= 0 && !life.used) {
          life.used = true;
          complain(position, "uses activations that " + text(action, ActionType::OFFLOAD) + " (position " +
                                 std::to_string(life.offloaded) + ") moved away; " + text(action, ActionType::RELOAD) +
                                 " must stand between");
        }
        if (action.type != ActionType::I) life.done = position;
        break;
      case ActionType::OFFLOAD:
        if (life.made < 0) complain(position, "there is no " + text(action, ActionType::F) + " before it");
        if (life.done >= 0) {
          complain(position, "nothing is left to move: the backward ended at position " + std::to_string(life.done));
          life.used = true;
        }
        life.offloaded = position;
        break;
      case ActionType::RELOAD:
        if (life.offloaded < 0) complain(position, "there is no " + text(action, ActionType::OFFLOAD) + " before it");
        life.offloaded = -1;
        break;
      default:
        break;
    }
  }

  const Schedule& schedule_;
  const ActionIndex& index_;
  const int rank_;
  CheckReport& report_;
  std::unordered_map<std::int64_t, Life> lives_;
};

}  // namespace

void check_offloads(const Schedule& schedule, const ActionIndex& index, CheckReport& report) {
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    if (std::ranges::any_of(schedule.ranks[rank], [](const Action& action) { return is_offload(action.type); }))
      OffloadCheck(schedule, index, static_cast<int>(rank), report).run();
  }
}

}  // namespace plumbline::schedule
