#include "runtime/schedule/action_index.h"

#include "runtime/error.h"

namespace plumbline::schedule {

ActionIndex::ActionIndex(const Schedule& schedule) : stages_(schedule.stages), microbatches_(schedule.microbatches) {
  PLUMBLINE_CHECK(shape_problem(schedule).empty(), shape_problem(schedule));
  column_.fill(-1);
  for (const auto& actions : schedule.ranks) {
    for (const Action& action : actions) {
      int& column = column_[static_cast<std::size_t>(action.type)];
      if (column < 0 && has_microbatch(action.type)) column = columns_++;
    }
  }
  table_.assign(static_cast<std::size_t>(stages_) * microbatches_ * columns_, -1);
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    const auto& actions = schedule.ranks[rank];
    for (std::size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      const int column = column_[static_cast<std::size_t>(action.type)];
      if (column < 0 || !in_range(action)) continue;
      if (schedule.rank_of(action.stage, action.microbatch) != static_cast<int>(rank)) continue;
      std::int32_t& entry = table_[row(action) + column];
      if (entry < 0) entry = static_cast<std::int32_t>(i);
    }
  }
}

Action input_backward(const ActionIndex& index, int stage, int microbatch) {
  const Action input_half{stage, ActionType::I, microbatch};
  return index.position(input_half) >= 0 ? input_half : Action{stage, ActionType::B, microbatch};
}

}  // namespace plumbline::schedule
