// For tests: a pass of PyTorch that its default path leaves out.
#pragma once

#include <span>
#include <utility>
#include <vector>

#include "runtime/schedule/schedule.h"

namespace plumbline::testing {

/// Merges an I and the W of the same stage and micro-batch directly after it into a B (_merge_bw). Members of groups
/// are unchanged.
inline schedule::Schedule merge_backward_halves(const schedule::Schedule& compute) {
  schedule::Schedule result = compute;
  for (auto& actions : result.ranks) {
    std::vector<schedule::Action> merged;
    bool mergeable = false;  // the last one is an I outside groups
    schedule::for_each_entry(actions, [&](std::span<const schedule::Action> entry) {
      const schedule::Action& action = entry.front();
      if (entry.size() == 1 && mergeable && action.type == schedule::ActionType::W &&
          action.stage == merged.back().stage && action.microbatch == merged.back().microbatch) {
        merged.back().type = schedule::ActionType::B;
        mergeable = false;
        return;
      }
      merged.insert(merged.end(), entry.begin(), entry.end());
      mergeable = entry.size() == 1 && action.type == schedule::ActionType::I;
    });
    actions = std::move(merged);
  }
  return result;
}

}  // namespace plumbline::testing
