#include "runtime/schedule/lowering/entries.h"
#include "runtime/schedule/lowering/passes.h"

namespace plumbline::schedule {

Schedule merge_backward_halves(const Schedule& compute) {
  Schedule result = compute;
  for (auto& actions : result.ranks) {
    std::vector<Action> merged;
    bool mergeable = false;  // the last one is an I outside groups
    for_each_entry(actions, [&](Entry entry) {
      const Action& action = entry.front();
      if (entry.size() == 1 && mergeable && action.type == ActionType::W && action.stage == merged.back().stage &&
          action.microbatch == merged.back().microbatch) {
        merged.back().type = ActionType::B;
        mergeable = false;
        return;
      }
      merged.insert(merged.end(), entry.begin(), entry.end());
      mergeable = entry.size() == 1 && action.type == ActionType::I;
    });
    actions = std::move(merged);
  }
  return result;
}

}  // namespace plumbline::schedule
