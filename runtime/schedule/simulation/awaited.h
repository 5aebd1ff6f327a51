// The needs of a step's computations: a check for completeness, and the messages that are missing during a simulation.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// Whether every stage and micro-batch has exactly one F and one B (or one I and one W; no backward if forward_only),
/// on its rank, after the producers of its inputs on that rank, and groups end before the list does and have no members
/// that need one another. For a compute schedule of valid shape, true if and only if violations() finds nothing but
/// deadlocks. Ignores OFFLOAD, RELOAD and actions of whole stages outside of groups. Linear in the number of actions
/// (times the edges at their stages); takes one byte per stage and micro-batch.
bool is_complete(const Schedule& compute, const StageGraph& graph, bool forward_only);

/// The messages from other ranks for which each F, B and I waits; an I counts as the B of its stage and micro-batch.
/// Does not refer to the arguments of its constructor after construction.
class Awaited {
 public:
  Awaited(const Schedule& compute, const StageGraph& graph, bool forward_only);

  struct Arrivals {
    double ready = 0;           ///< when the latest message sent so far arrives
    std::uint32_t missing = 0;  ///< number of messages not yet sent
    std::int32_t last = -1;     ///< index of that message in Recording::transfers; -1: none, or not recorded
  };

  /// The messages for which an F waits, or a B or I (not if forward_only). References stay valid as long as this
  /// object.
  Arrivals& forward(int stage, int microbatch) { return awaited_[row(stage, microbatch)]; }
  Arrivals& backward(int stage, int microbatch) { return awaited_[row(stage, microbatch) + 1]; }

  /// The messages for which the action waits; null for a W and for all that is no computation, which wait for none.
  Arrivals* of(const Action& action) {
    if (action.type == ActionType::W || !is_compute(action.type)) return nullptr;
    return action.type == ActionType::F ? &forward(action.stage, action.microbatch)
                                        : &backward(action.stage, action.microbatch);
  }

 private:
  std::size_t row(int stage, int microbatch) const {
    return (static_cast<std::size_t>(stage) * microbatches_ + microbatch) * directions_;
  }

  std::size_t microbatches_, directions_;
  std::vector<Arrivals> awaited_;
};

}  // namespace plumbline::schedule
