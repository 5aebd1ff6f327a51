#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/schedule/check/check_parts.h"
#include "runtime/schedule/check/replay.h"
#include "runtime/schedule/collectives.h"

namespace plumbline::schedule {
namespace {

// Walks one rank after another; the state of a stage is reset at the end of each rank that has such actions.
class WholeStageCheck {
 public:
  WholeStageCheck(const Schedule& schedule, CheckReport& report)
      : schedule_(schedule), report_(report), stages_(schedule.stages) {
    for (std::size_t i = 0; i < schedule.rank_of_stage.size(); ++i)
      held_.emplace_back(schedule.rank_of_stage[i], static_cast<int>(i) % schedule.stages);
    std::ranges::sort(held_);
  }

  void check_rank(int rank) {
    const std::vector<Action>& actions = schedule_.ranks[rank];
    const auto is_whole = [](const Action& action) { return !has_microbatch(action.type); };
    if (std::none_of(actions.begin(), actions.end(), is_whole)) return;
    for (const Action& action : actions) {
      if (!exists(action)) continue;
      const bool window = action.type == ActionType::UNSHARD || action.type == ActionType::RESHARD;
      StageState& stage = stages_[action.stage];
      stage.windows = stage.windows || (window && holds(rank, action.stage));
    }
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (exists(actions[i])) check({rank, static_cast<int>(i)}, actions[i]);
    }
    for (const Action& action : actions) {
      if (!exists(action)) continue;
      StageState& stage = stages_[action.stage];
      if (stage.opened >= 0)
        complain({rank, stage.opened}, "is never followed by a RESHARD of stage " + text(action.stage));
      stage = StageState();
    }
  }

 private:
  struct StageState {
    bool windows = false;           // this rank has an UNSHARD or RESHARD
    int opened = -1;                // the position of the UNSHARD whose window is open
    int reduced = -1, waited = -1;  // the positions of REDUCE_GRAD and WAIT_REDUCE_GRAD
  };

  static std::string text(int number) { return std::to_string(number); }
  bool exists(const Action& action) const { return action.stage >= 0 && action.stage < schedule_.stages; }
  bool holds(int rank, int stage) const { return std::ranges::binary_search(held_, std::pair(rank, stage)); }
  void complain(const Place& step, const std::string& reason) {
    report_.add(describe_position(schedule_, step) + ": " + reason);
  }

  void check(const Place& step, const Action& action) {
    StageState& stage = stages_[action.stage];
    if (is_compute(action.type)) return check_compute(step, action, stage);
    if (has_microbatch(action.type)) return;
    if (!holds(step.rank, action.stage)) return complain(step, "this rank does not hold stage " + text(action.stage));
    switch (action.type) {
      case ActionType::UNSHARD:
        if (stage.opened >= 0) complain(step, "the stage is unsharded already, at position " + text(stage.opened));
        stage.opened = step.position;
        break;
      case ActionType::RESHARD:
        if (stage.opened < 0) complain(step, "the stage is not unsharded here");
        stage.opened = -1;
        break;
      case ActionType::REDUCE_GRAD:
        once(step, stage.reduced);
        break;
      default:
        if (stage.reduced < 0) complain(step, "there is no REDUCE_GRAD of the stage before it");
        once(step, stage.waited);
    }
  }

  void check_compute(const Place& step, const Action& action, const StageState& stage) {
    if (stage.windows && stage.opened < 0) complain(step, "the stage is not unsharded here");
    if (stage.reduced >= 0 && (action.type == ActionType::B || action.type == ActionType::W)) {
      complain(step, "adds to the stage's gradient after its REDUCE_GRAD at position " + text(stage.reduced));
    }
  }

  void once(const Place& step, int& position) {
    if (position >= 0) return complain(step, "stands a second time, first at position " + text(position));
    position = step.position;
  }

  const Schedule& schedule_;
  CheckReport& report_;
  std::vector<StageState> stages_;
  std::vector<std::pair<int, int>> held_;  ///< each rank with each stage that it holds, ascending
};

// Every rank that holds the stage takes part in each operation; names the first one that does not.
void check_participants(const Schedule& schedule, CheckReport& report) {
  const Collectives collectives(schedule);
  for (const Collectives::Operation& operation : collectives.operations()) {
    const std::vector<int>& ranks = collectives.ranks_of(operation);
    const std::vector<Place>& begun = operation.begun_at;
    if (begun.size() == ranks.size()) continue;
    std::size_t missing = 0;
    while (missing < begun.size() && begun[missing].rank == ranks[missing]) ++missing;
    report.add(describe_position(schedule, begun.front()) + ": rank " + std::to_string(ranks[missing]) +
               " holds stage " + std::to_string(operation.stage) + " as well and takes no part" +
               (operation.number == 0 ? "" : ": it has " + std::to_string(operation.number) + " UNSHARD of it"));
  }
}

}  // namespace

void check_whole_stages(const Schedule& schedule, CheckReport& report) {
  WholeStageCheck check(schedule, report);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) check.check_rank(static_cast<int>(rank));
  check_participants(schedule, report);
}

}  // namespace plumbline::schedule
