#include "runtime/schedule/action_index.h"

#include "runtime/error.h"

namespace plumbline {

ActionIndex::ActionIndex(const Schedule& schedule) : stages_(schedule.stages), microbatches_(schedule.microbatches) {
  PLUMBLINE_CHECK(shape_problem(schedule).empty(), shape_problem(schedule));
  std::array<std::int32_t, 8> absent;
  absent.fill(-1);
  table_.assign(static_cast<std::size_t>(stages_) * microbatches_, absent);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& actions = schedule.ranks[rank];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (!in_range(actions[i]) || schedule.rank_of_stage[actions[i].stage] != static_cast<int>(rank)) continue;
      std::int32_t& entry = table_[row(actions[i])][static_cast<std::size_t>(actions[i].type)];
      if (entry < 0) entry = static_cast<std::int32_t>(i);
    }
  }
}

Action input_backward(const ActionIndex& index, int stage, int microbatch) {
  const Action input_half{stage, ActionType::I, microbatch};
  return index.position(input_half) >= 0 ? input_half : Action{stage, ActionType::B, microbatch};
}

}  // namespace plumbline
