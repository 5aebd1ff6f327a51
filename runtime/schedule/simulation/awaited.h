// The needs of a step's computations: a scan for completeness, and the messages still missing during the simulation.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/schedule/stage_graph.h"

namespace plumbline::schedule {

/// True when every stage and micro-batch has exactly one F and one B (or one I and one W; no backward when
/// forward-only), on its rank, after the producers of its inputs on that rank, and groups end before the list and have
/// no members that need one another. Agrees with violations() on a compute schedule of valid shape, except for
/// deadlocks and the reasons. One byte per stage and micro-batch.
bool is_complete(const Schedule& compute, const StageGraph& graph, bool forward_only);

/// The messages from other ranks that each F, B and I waits for; an I counts as the B of its stage and micro-batch.
class Awaited {
 public:
  Awaited(const Schedule& compute, const StageGraph& graph, bool forward_only);

  struct Arrivals {
    double ready = 0;           ///< arrival of the latest known message
    std::uint32_t missing = 0;  ///< messages not yet sent
    std::int32_t last = -1;     ///< the record of that latest message
  };

  Arrivals& forward(int stage, int microbatch) { return awaited_[row(stage, microbatch)]; }
  Arrivals& backward(int stage, int microbatch) { return awaited_[row(stage, microbatch) + 1]; }

  /// Null for a W, which waits for no message.
  Arrivals* of(const Action& action) {
    if (action.type == ActionType::W) return nullptr;
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
