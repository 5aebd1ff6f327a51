// Derives which rank holds which stage from the computations of a schedule.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/error.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// InputError caused by one action, at `rank` and `position`.
class PlacementError : public InputError {
 public:
  PlacementError(int rank, std::size_t position, const std::string& reason)
      : InputError(reason), rank(rank), position(position) {}

  int rank;
  std::size_t position;
};

/// Fills stages, microbatches, rank_of_stage and replica_of_microbatch of a schedule that has name and ranks. A stage
/// may be on several ranks (replicas of the model, as in DualPipe and Chimera) if each micro-batch of it is on one, and
/// all stages divide the micro-batches in the same way; replicas count from 0 by their first micro-batch. Throws
/// InputError for a gap in the numbers of stages or micro-batches, and PlacementError for an action that contradicts
/// the others. Takes n log n of the number of actions, whatever numbers are in them.
void derive_placement(Schedule& schedule);

}  // namespace plumbline::schedule
