// The actions for which each action of a schedule must wait: its producer, its receive, and its neighbours along the
// edges.
#pragma once

#include <cstddef>
#include <optional>

#include "runtime/schedule/action_index.h"
#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// All arguments must outlive this object. shape_problem(schedule) must be empty, and `index` that of the schedule.
class Needs {
 public:
  Needs(const Schedule& schedule, const StageGraph& graph, const ActionIndex& index);

  /// The number of needs that at() can give for an action whose stage and micro-batch exist: at most 2 plus the edges
  /// of its stage; 0 for receives, OFFLOAD, RELOAD and actions of a whole stage.
  std::size_t count(const Action& action) const;

  /// Need `number` of `action`, 0 <= number < count(action): an action of this or another rank, which may be absent
  /// from the schedule. Empty if `action` has no need of that number. F needs the forwards that feed its stage. B and I
  /// need the F of their stage and the gradients from the stages that it feeds. W needs its I, a send needs its
  /// producer, WAIT_SEND needs its send. A value from another rank needs the send there, which must only have begun,
  /// and the receive on this rank.
  std::optional<Action> at(const Action& action, std::size_t number) const;

 private:
  const Schedule& schedule_;
  const StageGraph& graph_;
  const ActionIndex& index_;
  const bool transport_;
};

}  // namespace plumbline::schedule
