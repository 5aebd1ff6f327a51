// Derives which rank holds which stage from the computations of a schedule.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/error.h"
#include "runtime/schedule/schedule.h"

namespace plumbline::schedule {

/// An InputError caused by one action, at `position` of the list of `rank`, both from 0.
class PlacementError : public InputError {
 public:
  PlacementError(int rank, std::size_t position, const std::string& reason)
      : InputError(reason), rank(rank), position(position) {}

  int rank;
  std::size_t position;
};

/// Fills stages, microbatches, rank_of_stage and replica_of_microbatch of a schedule whose name and ranks are set. A
/// stage may be on several ranks (replicas of the model, as in DualPipe and Chimera) if each of its micro-batches is on
/// one rank, and all stages divide the micro-batches in the same way; replicas count from 0 by their first micro-batch.
/// Throws InputError for a schedule without computations and for a gap in the numbers of stages or micro-batches, and
/// PlacementError for an action that contradicts the others; the four fields are then unspecified. Takes O(n log n)
/// time for n actions, whatever numbers they contain.
void derive_placement(Schedule& schedule);

}  // namespace plumbline::schedule
