#include "runtime/schedule/lowering/entries.h"

namespace plumbline::schedule {
namespace {

std::string range(int count) { return "0 to " + std::to_string(count - 1); }

void require_only(const Schedule& schedule, bool (*accepts)(ActionType), const char* otherwise) {
  require_in_place(schedule);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& actions = schedule.ranks[rank];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (!accepts(actions[i].type)) refuse_at(schedule, rank, i, otherwise);
    }
  }
}

}  // namespace

void require_in_place(const Schedule& schedule) {
  if (const std::string problem = shape_problem(schedule); !problem.empty()) refuse(schedule, problem);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& actions = schedule.ranks[rank];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      if (action.stage < 0 || action.stage >= schedule.stages)
        refuse_at(schedule, rank, i, "there are stages " + range(schedule.stages));
      if (!has_microbatch(action.type)) continue;
      if (action.microbatch < 0 || action.microbatch >= schedule.microbatches)
        refuse_at(schedule, rank, i, "there are micro-batches " + range(schedule.microbatches));
      const int home = schedule.rank_of(action.stage, action.microbatch);
      if (home != static_cast<int>(rank))
        refuse_at(schedule, rank, i,
                  "micro-batch " + std::to_string(action.microbatch) + " of stage " + std::to_string(action.stage) +
                      " is on rank " + std::to_string(home));
    }
  }
}

void require_compute_only(const Schedule& schedule) {
  require_only(schedule, [](ActionType type) { return is_compute(type); }, "only F, B, I and W can be lowered");
}

void require_no_transport(const Schedule& schedule) {
  require_only(
      schedule, [](ActionType type) { return is_compute(type) || is_offload(type) || !has_microbatch(type); },
      "a schedule with transfers is lowered already");
}

}  // namespace plumbline::schedule
